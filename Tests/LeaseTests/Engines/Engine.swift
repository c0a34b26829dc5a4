// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// What elects: its servers, and the guide's command for it. This one is flock(1), without a server.
class Engine {
  enum Kind: String {
    case flock, etcd, postgresql, kubernetes

    /// What has to be installed.
    var lack: String? {
      let (programs, packages) =
        switch self {
        case .flock: (["flock"], "util-linux")
        case .etcd: (["etcd", "etcdctl"], "etcd-server etcd-client")
        case .postgresql: ([PostgresEngine.programs + "/initdb", "psql"], "postgresql")
        case .kubernetes:
          (
            ["etcd", "openssl", "kubectl", "kube-apiserver"],
            "etcd-server openssl, and of Kubernetes, in the path, kubectl and kube-apiserver"
          )
        }
      guard programs.contains(where: Shell.lacks) else { return nil }
      return "There is no \(rawValue): apt-get install \(packages)"
    }

    func start() throws -> Engine {
      let engine =
        switch self {
        case .flock: try Engine(self)
        case .etcd: try EtcdEngine(self, Network())
        case .postgresql: try PostgresEngine(self, Network())
        case .kubernetes: try KubernetesEngine(self, Network())
        }
      try engine.begin()
      return engine
    }
  }

  let kind: Kind
  let network: Network?
  /// Everybody's, since PostgreSQL does not run as root.
  let folder: String
  /// Of several checkouts that are tested at once each has ports of its own, also where it has no network of its own.
  let port = 20_000 + Int(getpid()) % 1000 * 10
  /// By number.
  private var servers: [Int: TestSupport.ChildProcess] = [:]

  init(_ kind: Kind, _ network: Network? = nil) throws {
    (self.kind, self.network) = (kind, network)
    folder = try Shell.run("mktemp -d /tmp/lease-XXXXXX")[0]
    chmod(folder, 0o777)
  }

  deinit {
    for number in servers.keys { try? stop(number, SIGKILL) }
    try? FileManager.default.removeItem(atPath: folder)
  }

  // MARK: What differs

  func begin() throws { try Shell.run("echo 0 >\(folder)/fence") }

  /// Seconds until another daemon may have the lease of one that says nothing.
  var timeToLive: Int { 3 }

  /// What runs a server.
  func server(_ number: Int) -> String { "" }

  /// What standby is told of it.
  var options: String { "" }

  func elector(for name: String) throws -> String {
    try Self.guide("One machine").joined(separator: "\n")
      .replacing("/run/ledger", with: folder).replacing("/var/lib/ledger", with: folder)
  }

  /// Prints how many have the lease or wait for it.
  var contenders: String { "grep -c \":$(stat -c %i \(folder)/lock) \" /proc/locks" }

  /// Whether one that is frozen loses the lease.
  var hasTimeToLive: Bool { false }

  var events: [Event] { [.term, .kill, .machine, .elector, .freeze] }

  // MARK: Servers

  func start(_ number: Int) throws {
    servers[number] = try Shell.start(
      "exec \(network?.inside("s") ?? "")\(server(number)) >>\(folder)/server\(number) 2>&1")
  }

  func stop(_ number: Int, _ signal: Int32) throws {
    let server = servers.removeValue(forKey: number)
    server?.send(signal)
    _ = try server?.wait()
  }

  /// Runs a command beside the servers.
  @discardableResult func run(_ script: String) throws -> [String] {
    try Shell.run("\(network?.inside("s") ?? "")sh -c '\(script)'")
  }

  private static let guide =
    "Sources/DaemonLifecycleLease/DaemonLifecycleLease.docc/RunningOnSeveralMachines.md"

  /// The command in a section of the guide, line by line.
  static func guide(_ heading: String) throws -> [String] {
    let section = try Package.read(guide).components(separatedBy: "\n### \(heading)\n")
    guard section.count == 2 else { throw TestFailure("The guide has no section \(heading)") }
    return section[1].components(separatedBy: "\n#")[0].split(separator: "\n")
      .filter { $0.hasPrefix("    ") }.map { String($0.dropFirst(4)) }
  }

  /// Writes the code blocks of a section of the guide to files of the engine's folder.
  func writeBlocks(
    of heading: String, to names: String..., changing change: (String) -> String = { $0 }
  ) throws {
    let blocks = try GuideBlock.all(of: Self.guide).filter { $0.heading == heading }
    guard blocks.count == names.count else {
      throw TestFailure("The guide's section \(heading) has \(blocks.count) blocks")
    }
    for (name, block) in zip(names, blocks) {
      try change(block.text).write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    }
  }
}
