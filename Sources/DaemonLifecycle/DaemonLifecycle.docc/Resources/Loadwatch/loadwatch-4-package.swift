// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "loadwatch",
  dependencies: [.package(path: "../DaemonLifecycle")],
  targets: [
    .executableTarget(
      name: "loadwatch",
      dependencies: [
        .product(name: "DaemonLifecycle", package: "DaemonLifecycle"),
        .product(name: "DaemonLifecycleState", package: "DaemonLifecycle"),
        .product(name: "DaemonLifecycleCodable", package: "DaemonLifecycle"),
      ]),
    .testTarget(
      name: "loadwatchTests",
      dependencies: [
        "loadwatch",
        .product(name: "DaemonLifecycleTesting", package: "DaemonLifecycle"),
      ]),
  ])
