// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// A clean release build of all library products, as a package sees it that depends on them, and of an empty
/// package.
enum Build: Row {
  static let name = "build"
  private static let products = [
    "DaemonSystemd", "DaemonLifecycle", "DaemonLifecycleCodable", "DaemonLifecycleFoundation",
    "DaemonLifecycleTesting",
  ]

  static func run(_ bench: Bench) throws {
    let row = "clean release build"
    let packages = [
      ("empty package", "Nothing", []), ("the library products", "Everything", products),
    ]
    var values: [String: [Double]] = [:]
    for (_, module, products) in packages { try write(module, products, bench) }
    for round in 1...(bench.isQuick ? 1 : 3) {
      progress("\(row): round \(round)")
      for (name, module, _) in packages.shuffled() {
        let path = directory(module, bench)
        try? FileManager.default.removeItem(atPath: path + "/.build")
        values[name, default: []].append(
          try Tool.run("swift", "build", "-c", "release", "--package-path", path))
      }
    }
    for (name, _, _) in packages {
      bench.results.record(row, name, "wall", "s", values[name] ?? [])
    }
    bench.results.judgeRatio(row, "wall", packages[1].0, to: packages[0].0, atMost: 10)
  }

  private static func directory(_ module: String, _ bench: Bench) -> String {
    bench.directory + "/scratch/" + module
  }

  private static func write(_ module: String, _ products: [String], _ bench: Bench) throws {
    let sources = directory(module, bench) + "/Sources/" + module
    try FileManager.default.createDirectory(atPath: sources, withIntermediateDirectories: true)
    // What is above `.build/benchmarks`.
    let root = URL(fileURLWithPath: bench.directory + "/../..").standardizedFileURL.path
    let dependencies = products.map { ".product(name: \"\($0)\", package: \"DaemonLifecycle\")" }
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription

      let package = Package(
        name: "\(module)",
        dependencies: [\(products.isEmpty ? "" : ".package(name: \"DaemonLifecycle\", path: \"\(root)\")")],
        targets: [
          .target(name: "\(module)", dependencies: [\(dependencies.joined(separator: ", "))])
        ]
      )
      """
    let file = directory(module, bench) + "/Package.swift"
    try manifest.write(toFile: file, atomically: true, encoding: .utf8)
    try "public func nothing() {}\n".write(
      toFile: "\(sources)/\(module).swift", atomically: true, encoding: .utf8)
  }
}
