// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// Three network namespaces, so that a cable can be cut: `s` for the servers, `a` and `b` for the daemons, one on each of
/// two links. Where there can be none, all is on loopback.
final class Network {
  private let id: String?

  init() {
    let id = "lease" + UUID().uuidString.prefix(8)
    guard getuid() == 0, (try? Shell.run("ip netns add \(id)s")) != nil else {
      self.id = nil
      return
    }
    self.id = id
    // What fails is said by the first daemon that finds no server.
    _ = try? Shell.run(
      "set -e; ip -n \(id)s link set lo up\n"
        + zip(["a", "b"], 1...).map { name, number in
          """
          ip netns add \(id)\(name)
          ip -n \(id)s link add v\(name) type veth peer name v netns \(id)\(name)
          ip -n \(id)s address add 10.99.\(number).1/24 dev v\(name)
          ip -n \(id)\(name) address add 10.99.\(number).2/24 dev v
          ip -n \(id)\(name) link set lo up
          ip -n \(id)\(name) link set v up
          ip -n \(id)s link set v\(name) up

          """
        }.joined())
  }

  deinit {
    for place in ["s", "a", "b"] { _ = try? Shell.run("ip netns del \(id ?? "")\(place)") }
  }

  var canBeCut: Bool { id != nil }

  /// What a command begins with that is run there.
  func inside(_ place: String) -> String { id.map { "ip netns exec \($0)\(place) " } ?? "" }

  /// Where the servers are for a daemon.
  func servers(for name: String) -> String {
    canBeCut ? "10.99.\(name == "a" ? 1 : 2).1" : "127.0.0.1"
  }

  func set(_ name: String, _ state: String) throws {
    try Shell.run("ip -n \(id ?? "")s link set v\(name) \(state)")
  }
}

enum Shell {
  /// With the folders of root's programs, which an ordinary user's path may lack.
  static let path = (ProcessInfo.processInfo.environment["PATH"] ?? "") + ":/usr/sbin:/sbin"

  static func start(_ script: String) throws -> TestSupport.ChildProcess {
    try TestSupport.ChildProcess(
      "/bin/sh", ["-c", script], environment: ["PATH": path], stderrToStdout: true)
  }

  @discardableResult static func run(_ script: String) throws -> [String] {
    let shell = try start(script)
    guard try shell.wait() == .status(0) else {
      throw TestFailure("\(script): \(shell.output.joined(separator: "\n"))")
    }
    return shell.output
  }

  static func lacks(_ program: String) -> Bool { (try? run("command -v \(program)")) == nil }
}
