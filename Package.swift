// swift-tools-version: 6.2
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
    .library(name: "Systemd", targets: ["Systemd"]),
    .library(name: "DaemonLifecycle", targets: ["DaemonLifecycle"]),
    .library(name: "DaemonLifecycleFoundation", targets: ["DaemonLifecycleFoundation"]),
    .library(name: "DaemonLifecycleTesting", targets: ["DaemonLifecycleTesting"]),
    .executable(name: "pollerd", targets: ["Pollerd"]),
    .executable(name: "echod", targets: ["Echod"]),
    .executable(name: "standby", targets: ["Standby"]),
    .executable(name: "clockd", targets: ["Clockd"]),
  ],
  targets: [
    .target(name: "CLinux"),
    .target(name: "Systemd", dependencies: ["CLinux"], swiftSettings: strict),
    .target(
      name: "DaemonLifecycle", dependencies: ["CLinux", "Systemd"], swiftSettings: strict),
    // The only library target that imports Foundation.
    .target(
      name: "DaemonLifecycleFoundation", dependencies: ["DaemonLifecycle"], swiftSettings: strict),
    .target(
      name: "DaemonLifecycleTesting", dependencies: ["CLinux", "Systemd", "DaemonLifecycle"],
      swiftSettings: strict),
    .executableTarget(
      name: "Pollerd", dependencies: ["DaemonLifecycle", "DaemonLifecycleFoundation", "Systemd"],
      path: "Examples/Pollerd", swiftSettings: strict),
    .executableTarget(
      name: "Echod", dependencies: ["DaemonLifecycle", "DaemonLifecycleFoundation", "Systemd"],
      path: "Examples/Echod", swiftSettings: strict),
    .executableTarget(
      name: "Standby", dependencies: ["DaemonLifecycle"], path: "Examples/Standby",
      swiftSettings: strict),
    .executableTarget(
      name: "Clockd", dependencies: ["DaemonLifecycle"], path: "Examples/Service",
      swiftSettings: strict),
    // Raises the limit of descriptors for the tests that run beside each other.
    .target(name: "TestLimits", path: "Tests/TestLimits"),
    .target(
      name: "TestSupport", dependencies: ["CLinux", "TestLimits"], path: "Tests/TestSupport",
      swiftSettings: strict),
    .testTarget(
      name: "SystemdTests",
      dependencies: [
        "CLinux", "Systemd", "DaemonLifecycle", "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "DaemonLifecycleTests",
      dependencies: [
        "CLinux", "Systemd", "DaemonLifecycle", "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    // Daemons for the process tests. Optimized, since that is what shortens the lives of observers.
    .executableTarget(
      name: "ProbeDaemon", dependencies: ["DaemonLifecycle"], path: "Tests/Probes/Daemon",
      swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .executableTarget(
      name: "ProbeSyncMain", dependencies: ["DaemonLifecycle"], path: "Tests/Probes/SyncMain",
      swiftSettings: strict),
    .executableTarget(
      name: "ProbeTopLevel", dependencies: ["DaemonLifecycle"], path: "Tests/Probes/TopLevel",
      swiftSettings: strict),
    .executableTarget(
      name: "ProbeService", dependencies: ["DaemonLifecycle", "Systemd"],
      path: "Tests/Probes/Service", swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .testTarget(
      name: "ProcessTests",
      dependencies: [
        "ProbeDaemon", "ProbeSyncMain", "ProbeTopLevel", "ProbeService", "Pollerd", "Echod",
        "Standby", "Clockd", "DaemonLifecycleTesting", "TestSupport",
      ],
      swiftSettings: strict),
    // Floods, thread limits, full disks, refused system calls: what a bad day brings, in child processes.
    .testTarget(
      name: "HostileTests",
      dependencies: [
        "ProbeDaemon", "ProbeService", "Pollerd", "Echod", "CLinux", "Systemd", "DaemonLifecycle",
        "DaemonLifecycleTesting", "TestLimits", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PollerdTests",
      dependencies: [
        "Pollerd", "DaemonLifecycle", "DaemonLifecycleFoundation", "DaemonLifecycleTesting",
        "Systemd",
      ],
      path: "Tests/PollerdTests", swiftSettings: strict),
    .testTarget(
      name: "EchodTests",
      dependencies: [
        "Echod", "DaemonLifecycle", "DaemonLifecycleTesting", "Systemd", "TestSupport",
      ],
      path: "Tests/EchodTests", swiftSettings: strict),
    .testTarget(
      name: "FoundationTests",
      dependencies: ["DaemonLifecycle", "DaemonLifecycleFoundation", "DaemonLifecycleTesting"],
      swiftSettings: strict),
    .testTarget(
      name: "StandbyTests", dependencies: ["Standby", "DaemonLifecycle", "DaemonLifecycleTesting"],
      swiftSettings: strict),
    .testTarget(
      name: "ServiceTests",
      dependencies: ["Clockd", "DaemonLifecycle", "DaemonLifecycleTesting", "TestSupport"],
      swiftSettings: strict),
    .executableTarget(
      name: "ProbeState", dependencies: ["CLinux", "DaemonLifecycle"], path: "Tests/Probes/State",
      swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .testTarget(
      name: "StateStoreTests",
      dependencies: [
        "CLinux", "Systemd", "DaemonLifecycle", "DaemonLifecycleFoundation",
        "DaemonLifecycleTesting", "ProbeState", "TestSupport",
      ],
      swiftSettings: strict),
    // On a real systemd; skipped unless MACHINE_SUITES says where. See Tests/Machine.
    .testTarget(
      name: "MachineTests", dependencies: ["Pollerd", "Echod", "Standby", "ProbeService"],
      swiftSettings: strict),
  ]
)
