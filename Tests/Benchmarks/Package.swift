// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own: the main package's build and tests do not get slower by it, and Foundation and the
// contestants stay out of it.
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]
let state = Target.Dependency.product(name: "DaemonLifecycleState", package: "DaemonLifecycle")
let lifecycle = Target.Dependency.product(name: "DaemonLifecycle", package: "DaemonLifecycle")

let package = Package(
  name: "Benchmarks",
  dependencies: [.package(name: "DaemonLifecycle", path: "../..")],
  targets: [
    // What a contestant says to the harness; the contestants in C use the same header.
    .target(name: "CBench"),
    // Processes and numbers; used by the harness and by the gate.
    .target(name: "Measuring", dependencies: ["CBench"], swiftSettings: strict),
    .executableTarget(
      name: "Harness", dependencies: ["CBench", "Measuring"], swiftSettings: strict),
    .executableTarget(name: "Gate", dependencies: ["Measuring"], swiftSettings: strict),
    // Daemons and programs that the harness starts.
    .target(name: "Stamping", dependencies: ["CBench", lifecycle], swiftSettings: strict),
    .executableTarget(
      name: "Ours", dependencies: ["CBench", "Stamping", lifecycle], swiftSettings: strict),
    .executableTarget(
      name: "OursSync", dependencies: ["CBench", "Stamping", lifecycle], swiftSettings: strict),
    .executableTarget(
      name: "Delivery", dependencies: ["CBench", "Counting", lifecycle], swiftSettings: strict),
    .target(name: "Counting", dependencies: ["CBench", lifecycle], swiftSettings: strict),
    .executableTarget(
      name: "Workload", dependencies: ["CBench", "Counting", lifecycle], swiftSettings: strict),
    .executableTarget(
      name: "Minimal", dependencies: ["CBench", lifecycle], swiftSettings: strict),
    .executableTarget(name: "Save", dependencies: ["CBench", state], swiftSettings: strict),
    .executableTarget(name: "Empty", dependencies: ["CBench"], swiftSettings: strict),
    .executableTarget(name: "OneTask", dependencies: ["CBench"], swiftSettings: strict),
    .executableTarget(name: "DispatchSignal", dependencies: ["CBench"], swiftSettings: strict),
  ]
)
