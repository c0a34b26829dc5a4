// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The examples, as a package that uses the libraries: swift run --package-path Examples echod
//
// The main package has the same targets for its tests, but no products of them, so that packages which depend on it see
// only the libraries.
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A library of the main package. The dependency below gives the package a name, so its folder may have any.
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
    .executable(name: "queued", targets: ["queued"]),
  ],
  dependencies: [.package(name: "DaemonLifecycle", path: "..")],
  targets: [
    .executableTarget(
      name: "pollerd",
      dependencies: [
        library("DaemonLifecycle"), library("DaemonLifecycleCodable"),
        library("DaemonLifecycleFiles"), library("DaemonLifecycleState"),
        library("DaemonSystemd"),
      ],
      path: "Pollerd", swiftSettings: strict),
    .executableTarget(
      name: "echod",
      dependencies: [
        library("DaemonLifecycle"), library("DaemonLifecycleFiles"), library("DaemonSystemd"),
      ],
      path: "Echod", swiftSettings: strict),
    .executableTarget(
      name: "standby",
      dependencies: [
        library("DaemonLifecycle"), library("DaemonLifecycleLease"), library("DaemonSystemd"),
      ],
      path: "Standby", swiftSettings: strict),
    .executableTarget(
      name: "clockd", dependencies: [library("DaemonLifecycle"), library("DaemonSystemd")],
      path: "Service", swiftSettings: strict),
    .executableTarget(
      name: "queued", dependencies: [library("DaemonLifecycle"), library("DaemonSystemd")],
      path: "Queue", swiftSettings: strict),
  ]
)
