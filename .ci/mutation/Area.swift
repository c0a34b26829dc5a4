// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Sources whose mutants the same tests should detect.
struct Area {
  /// A run of some tests.
  struct Stage {
    /// What `--filter` is given.
    let filter: String
    var skip: String? = nil
    var environment: [String: String] = [:]
    /// Its tests use the machine's clock, and the machine has other work: what fails is tried once more. What reaches
    /// the time limit is in any stage.
    var isTimed = false
  }

  let name: String
  /// A folder, or a file.
  let path: String
  /// The shortest first: a later one is tried with what the earlier ones have not detected.
  let stages: [Stage]

  func files() throws -> [String] {
    if path.hasSuffix(".swift") { return [path] }
    return try FileManager.default.contentsOfDirectory(atPath: path)
      .filter { $0.hasSuffix(".swift") }.sorted().map { "\(path)/\($0)" }
  }

  static let testTargets = "ModelTests,DaemonLifecycleTests,StateStoreTests,LeaseTests"
  static let modules = ["DaemonLifecycle", "DaemonLifecycleState", "DaemonLifecycleLease"]
  static let all = [
    Area(
      name: "state", path: "Sources/DaemonLifecycleState",
      stages: [
        Stage(
          filter: "StateRecordTests|StateStoreTests/|StateSaverTests|StateCallTests",
          environment: ["FUZZ_INPUTS": "300"]),
        Stage(filter: "FaultTests", environment: ["LONG_TESTS": "1"]),
        // Of the last only what a disk in memory cannot show.
        Stage(
          filter: "DirectoryTests|TakenDescriptorTests|CodableStateStoreTests|KillTests",
          environment: ["STATE_KILLS": "20"], isTimed: true),
      ]),
    Area(name: "registry", path: "Sources/DaemonLifecycle/Registry", stages: model),
    Area(name: "machine", path: "Sources/DaemonLifecycle/Machine", stages: model),
    Area(
      name: "lease", path: "Sources/DaemonLifecycleLease/LeaseRules.swift",
      stages: [
        Stage(filter: "LeaseTests\\.LeaseRulesTests/"),
        Stage(filter: "LeaseTests\\.LeaseTests/"),
        Stage(filter: "LeaseTests\\.ElectorTests/", isTimed: true),
      ]),
  ]

  private static let model = [
    Stage(
      filter: "ModelTests\\.", skip: "aLieIsFound|asAListOfGroups|asASortedArray|asADictionary",
      environment: ["MACHINE_SCHEDULES": "200", "EXPLORED_STATES": "200"]),
    Stage(
      filter: "ModelTests\\.", skip: "aLieIsFound",
      environment: ["MACHINE_SCHEDULES": "4000", "EXPLORED_STATES": "1000"]),
    // On the mock, whose clock is virtual: what the machine's effects come to.
    Stage(filter: "DaemonLifecycleTests\\.", skip: "ObserverOwnershipTests", isTimed: true),
  ]
}
