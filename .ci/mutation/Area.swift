// SPDX-License-Identifier: Apache-2.0
/// Files whose mutants the same tests are to notice.
struct Area {
  /// A run of some tests.
  struct Stage {
    /// What `--filter` is given; `nil`: all that there are.
    let filter: String?
    var skip: String? = nil
    var environment: [String: String] = [:]
    /// Its tests use the machine's clock, and the machine has other work: what fails is tried once more. What reaches
    /// the time limit is in any stage.
    var isTimed = false
  }

  let name: String
  let module: String
  /// Below the module's folder: files, or folders with all that is in them.
  let sources: [String]
  let testTargets: [String]
  /// The shortest first: a later one is tried with what the earlier ones have not noticed.
  let stages: [Stage]

  static let all = [
    Area(
      name: "state", module: "DaemonLifecycleState", sources: [""],
      testTargets: ["StateStoreTests"],
      stages: [
        Stage(
          filter: "StateRecordTests|StateStoreTests/|SavedStateTests|StateCallTests",
          environment: ["FUZZ_INPUTS": "300"]),
        Stage(filter: "FaultTests", environment: ["LONG_TESTS": "1"]),
        // Of the last only what a disk in memory cannot show.
        Stage(
          filter: "DirectoryTests|CodableStateStoreTests|KillTests",
          environment: ["STATE_KILLS": "20"], isTimed: true),
      ]),
    Area(
      name: "parsers", module: "DaemonSystemd",
      sources: [
        "Base64.swift", "Bus/UnitName.swift", "Bytes.swift", "ChildEnvironment.swift",
        "Credentials.swift", "DescriptorName.swift", "JournalEncoding.swift", "JournalEntry.swift",
        "JournalField.swift", "JournalLines.swift", "JournalMessageID.swift",
        "JournalPriority.swift",
        "MemoryFile.swift", "NotifyAddress.swift", "NotifyField.swift", "NotifyMessage.swift",
        "PassedDescriptors.swift", "PressureWatch.swift", "Preservation.swift",
        "ServiceDirectories.swift",
        "ServiceEnvironment.swift", "ServiceInvocation.swift", "SocketActivation.swift",
        "StatusText.swift", "UnitJob.swift", "VisibleText.swift",
      ],
      testTargets: ["DaemonSystemdTests"],
      stages: [
        Stage(
          filter: "DaemonSystemdTests\\.",
          skip: "Bus|Fuzz|Generated|Real|Kernel|ChildProcess|Pressure"),
        Stage(
          filter: "Fuzz|Generated|BusUnitName|ChildProcess|Pressure|BusSource",
          skip: "BusValueFuzz|PressureKernel",
          environment: ["FUZZ_INPUTS": "3000"]),
      ]),
    Area(
      name: "registry", module: "DaemonLifecycle", sources: ["Registry/"],
      testTargets: ["ModelTests", "DaemonLifecycleTests"], stages: model),
    Area(
      name: "machine", module: "DaemonLifecycle", sources: ["Machine/"],
      testTargets: ["ModelTests", "DaemonLifecycleTests"], stages: model),
  ]

  private static let model = [
    Stage(
      filter: "ModelTests\\.",
      skip:
        "aLieIsFound|theSameSeed|theSimulationNotices|asAListOfGroups|asASortedArray|asADictionary",
      environment: [
        "MACHINE_SCHEDULES": "200", "REGISTRY_SCHEDULES": "1000", "EXPLORED_STATES": "200",
      ]),
    Stage(
      filter: "ModelTests\\.", skip: "aLieIsFound|theSameSeed|theSimulationNotices",
      environment: [
        "MACHINE_SCHEDULES": "4000", "REGISTRY_SCHEDULES": "10000", "EXPLORED_STATES": "1000",
      ]),
    // On the mock, whose clock is virtual: what the machine's effects come to.
    Stage(
      filter: "DaemonLifecycleTests\\.", skip: "ObserverOwnershipTests|blockedHooksLeaveAThread",
      isTimed: true),
  ]
}
