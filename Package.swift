// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
  name: "DaemonLifecycle",
  products: [
    .library(name: "DaemonSystemd", targets: ["DaemonSystemd"]),
    .library(name: "DaemonLifecycle", targets: ["DaemonLifecycle"]),
    .library(name: "DaemonLifecycleFiles", targets: ["DaemonLifecycleFiles"]),
    .library(name: "DaemonLifecycleState", targets: ["DaemonLifecycleState"]),
    .library(name: "DaemonLifecycleCodable", targets: ["DaemonLifecycleCodable"]),
    .library(name: "DaemonLifecycleFoundation", targets: ["DaemonLifecycleFoundation"]),
    .library(name: "DaemonLifecycleLease", targets: ["DaemonLifecycleLease"]),
    .library(name: "DaemonLifecycleTesting", targets: ["DaemonLifecycleTesting"]),
    .library(name: "DaemonLifecycleExploring", targets: ["DaemonLifecycleExploring"]),
    .library(name: "DaemonLifecycleTraces", targets: ["DaemonLifecycleTraces"]),
  ],
  // No products for the examples: packages that depend on this one would see them. Where this package itself is built,
  // SwiftPM makes an executable of each of their targets, under the target's name: `swift run pollerd`.
  targets: [
    .target(name: "CLinux"),
    .target(name: "DaemonSystemd", dependencies: ["CLinux"], swiftSettings: strict),
    .target(
      name: "DaemonLifecycle", dependencies: ["CLinux", "DaemonSystemd"], swiftSettings: strict),
    // An executable links a module whole: what is not every daemon's is a module of its own.
    .target(
      name: "DaemonLifecycleState", dependencies: ["CLinux", "DaemonSystemd", "DaemonLifecycle"],
      swiftSettings: strict),
    .target(
      name: "DaemonLifecycleFiles", dependencies: ["CLinux", "DaemonSystemd", "DaemonLifecycle"],
      swiftSettings: strict),
    // FoundationEssentials, and no more of Foundation: daemons that save values are to stay small.
    .target(
      name: "DaemonLifecycleCodable", dependencies: ["DaemonLifecycle", "DaemonLifecycleState"],
      swiftSettings: strict),
    // The only library target that imports Foundation.
    .target(
      name: "DaemonLifecycleFoundation", dependencies: ["DaemonLifecycle"], swiftSettings: strict),
    // Where threads wait: what few daemons need, and no other has.
    .target(name: "CTraces"),
    .target(
      name: "DaemonLifecycleTraces", dependencies: ["CTraces", "CLinux", "DaemonLifecycle"],
      swiftSettings: strict),
    // One daemon of several is active.
    .target(name: "CLease"),
    .target(
      name: "DaemonLifecycleLease",
      dependencies: ["CLease", "CLinux", "DaemonSystemd", "DaemonLifecycle"], swiftSettings: strict),
    .target(
      name: "DaemonLifecycleTesting",
      dependencies: ["CLinux", "DaemonSystemd", "DaemonLifecycle", "DaemonLifecycleLease"],
      swiftSettings: strict),
    // The runtime's hooks, for explorations.
    .target(name: "CExploration"),
    .target(
      name: "DaemonLifecycleExploring",
      dependencies: [
        "CExploration", "CLinux", "DaemonSystemd", "DaemonLifecycle", "DaemonLifecycleTesting",
      ],
      swiftSettings: strict),
    // The examples, for the tests. `Examples` has them as a package of their own.
    .executableTarget(
      name: "pollerd",
      dependencies: [
        "DaemonLifecycle", "DaemonLifecycleCodable", "DaemonLifecycleFiles",
        "DaemonLifecycleState", "DaemonSystemd",
      ],
      path: "Examples/Pollerd", swiftSettings: strict),
    .executableTarget(
      name: "echod",
      dependencies: ["DaemonLifecycle", "DaemonLifecycleFiles", "DaemonSystemd"],
      path: "Examples/Echod", swiftSettings: strict),
    .executableTarget(
      name: "standby", dependencies: ["DaemonLifecycle", "DaemonLifecycleLease", "DaemonSystemd"],
      path: "Examples/Standby", swiftSettings: strict),
    .executableTarget(
      name: "clockd", dependencies: ["DaemonLifecycle", "DaemonSystemd"],
      path: "Examples/Service", swiftSettings: strict),
    .executableTarget(
      name: "queued", dependencies: ["DaemonLifecycle", "DaemonSystemd"], path: "Examples/Queue",
      swiftSettings: strict),
    // System calls that tests make, or make fail, and that Swift can't see.
    .target(name: "TestLimits", path: "Tests/TestLimits"),
    .target(
      name: "TestSupport", dependencies: ["CLinux", "DaemonLifecycle", "TestLimits"],
      path: "Tests/TestSupport", swiftSettings: strict),
    .testTarget(
      name: "DaemonSystemdTests",
      dependencies: [
        "CLinux", "DaemonSystemd", "DaemonLifecycle", "DaemonLifecycleTesting", "ProbeService",
        "TestLimits", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "DaemonLifecycleTests",
      dependencies: [
        "CLinux", "DaemonSystemd", "DaemonLifecycle", "DaemonLifecycleFiles",
        "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    // What calls hooks: the executor, drivers and calls. CI optimizes it too, since that is what shortens lives.
    .testTarget(
      name: "HookTests",
      dependencies: [
        "CLinux", "DaemonLifecycle", "DaemonLifecycleTesting", "ProbeDaemon",
        "TestSupport",
      ],
      swiftSettings: strict),
    // The machine and the registry as values: without a thread, a clock or a signal.
    .testTarget(
      name: "ModelTests",
      dependencies: ["CLinux", "DaemonSystemd", "DaemonLifecycle", "TestSupport"],
      swiftSettings: strict),
    // Daemons for the process tests. Optimized, since that is what shortens the lives of observers.
    .executableTarget(
      name: "ProbeDaemon",
      dependencies: [
        "DaemonLifecycle", "DaemonLifecycleFiles", "DaemonLifecycleState",
        "DaemonLifecycleTraces", "TestLimits",
      ],
      path: "Tests/Probes/Daemon",
      swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .executableTarget(
      name: "ProbeLease", dependencies: ["DaemonLifecycle", "DaemonLifecycleLease"],
      path: "Tests/Probes/Lease", swiftSettings: strict),
    .executableTarget(
      name: "ProbeSyncMain", dependencies: ["DaemonLifecycle"], path: "Tests/Probes/SyncMain",
      swiftSettings: strict),
    .executableTarget(
      name: "ProbeTopLevel", dependencies: ["DaemonLifecycle"], path: "Tests/Probes/TopLevel",
      swiftSettings: strict),
    .executableTarget(
      name: "ProbeService",
      dependencies: [
        "DaemonLifecycle", "DaemonLifecycleFiles", "DaemonLifecycleState", "DaemonSystemd",
      ],
      path: "Tests/Probes/Service", swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .testTarget(
      name: "ProcessTests",
      dependencies: [
        "ProbeDaemon", "ProbeSyncMain", "ProbeTopLevel", "ProbeService", "pollerd", "echod",
        "standby", "clockd", "queued", "DaemonLifecycle", "DaemonLifecycleTesting", "TestLimits",
        "TestSupport",
      ],
      swiftSettings: strict),
    // Floods, thread limits, full disks, refused system calls: what a bad day brings, in child processes.
    .testTarget(
      name: "HostileTests",
      dependencies: [
        "ProbeDaemon", "ProbeService", "CLinux", "DaemonSystemd", "DaemonLifecycle",
        "DaemonLifecycleState", "DaemonLifecycleTesting", "TestLimits", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PollerdTests",
      dependencies: [
        "pollerd", "DaemonLifecycle", "DaemonLifecycleCodable", "DaemonLifecycleFiles",
        "DaemonLifecycleState", "DaemonLifecycleExploring", "DaemonLifecycleTesting",
        "DaemonSystemd", "TestSupport",
      ],
      path: "Tests/PollerdTests", swiftSettings: strict),
    .testTarget(
      name: "EchodTests",
      dependencies: [
        "echod", "DaemonLifecycle", "DaemonLifecycleTesting", "DaemonSystemd", "TestSupport",
      ],
      path: "Tests/EchodTests", swiftSettings: strict),
    .testTarget(
      name: "FoundationTests",
      dependencies: [
        "DaemonLifecycle", "DaemonLifecycleFoundation", "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ExploringTests",
      dependencies: [
        "DaemonLifecycle", "DaemonLifecycleExploring", "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "TracesTests",
      dependencies: [
        "CLinux", "CTraces", "DaemonLifecycle", "DaemonLifecycleTraces", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StandbyTests",
      dependencies: [
        "standby", "DaemonLifecycle", "DaemonLifecycleLease", "DaemonLifecycleExploring",
        "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ServiceTests",
      dependencies: ["clockd", "DaemonLifecycle", "DaemonLifecycleTesting", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "LeaseTests",
      dependencies: [
        "ProbeLease", "standby", "DaemonLifecycle", "DaemonLifecycleLease",
        "DaemonLifecycleExploring", "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    // One of its tests starts a PostgreSQL; skipped where none is installed.
    .testTarget(
      name: "QueueTests",
      dependencies: [
        "queued", "DaemonLifecycle", "DaemonLifecycleExploring", "DaemonLifecycleTesting",
        "TestSupport",
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "ProbeState", dependencies: ["CLinux", "DaemonLifecycleState"],
      path: "Tests/Probes/State",
      swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .testTarget(
      name: "StateStoreTests",
      dependencies: [
        "CLinux", "DaemonSystemd", "DaemonLifecycle", "DaemonLifecycleCodable",
        "DaemonLifecycleState", "DaemonLifecycleTesting", "ProbeState", "TestSupport",
      ],
      swiftSettings: strict),
    // On a real systemd; skipped unless MACHINE_SUITES says where. See Tests/Machine.
    .testTarget(
      name: "MachineTests",
      dependencies: ["pollerd", "echod", "standby", "ProbeService", "TestSupport"],
      swiftSettings: strict),
    // On other inits; skipped unless INITS says on which. See Tests/Inits.
    .testTarget(
      name: "InitTests", dependencies: ["pollerd", "TestSupport"], swiftSettings: strict),
  ]
)

// For scripts: TEST_TARGETS=DaemonLifecycleTests,StateStoreTests builds no other tests.
if let kept = Context.environment["TEST_TARGETS"]?.split(separator: ",") {
  package.targets.removeAll { target in
    target.type == .test && !kept.contains { $0 == target.name }
  }
}
