// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The examples as a user's package has them: swift run --package-path Examples echod
//
// The main package has the same targets for its own tests, without products, so that what depends on it has only the
// libraries. A program needs no more than what is here.
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A library of the main package, which is known by its name here, whatever its folder is called.
func library(_ name: String) -> Target.Dependency {
  .product(name: name, package: "DaemonLifecycle")
}

let package = Package(
  name: "Examples",
  products: [
    .executable(name: "pollerd", targets: ["pollerd"]),
    .executable(name: "echod", targets: ["echod"]),
    .executable(name: "standby", targets: ["standby"]),
    .executable(name: "clockd", targets: ["clockd"]),
  ],
  dependencies: [.package(name: "DaemonLifecycle", path: "..")],
  targets: [
    .executableTarget(
      name: "pollerd",
      dependencies: [
        library("DaemonLifecycle"), library("DaemonLifecycleCodable"),
        library("DaemonLifecycleState"), library("DaemonSystemd"),
      ],
      path: "Pollerd", swiftSettings: strict),
    .executableTarget(
      name: "echod",
      dependencies: [
        library("DaemonLifecycle"), library("DaemonLifecycleCodable"), library("DaemonSystemd"),
      ],
      path: "Echod", swiftSettings: strict),
    .executableTarget(
      name: "standby", dependencies: [library("DaemonLifecycle")], path: "Standby",
      swiftSettings: strict),
    .executableTarget(
      name: "clockd", dependencies: [library("DaemonLifecycle")], path: "Service",
      swiftSettings: strict),
  ]
)
