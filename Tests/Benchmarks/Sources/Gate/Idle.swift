// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// What a daemon costs that has nothing to do: 10 s of it, after 12 s.
final class Idle {
  private let directory: String
  /// The least of the rounds so far, since the kernel may move a thread at any time.
  private var counts: [String: Int] = [:]
  private var given: Set<String> = []

  init(directory: String) { self.directory = directory }

  /// Measured once for all names, and again when one is asked for again.
  ///
  /// - Parameter name: `threads`, `timers` (descriptors), or a context-switch count: `run`, `runAndExit`.
  func value(of name: String) throws -> Int {
    let isRepeated = !given.insert(name).inserted
    if counts.isEmpty || isRepeated { counts.merge(try measure(), uniquingKeysWith: min) }
    guard let value = counts[name] else { throw HarnessError("Nothing measures \"idle.\(name)\".") }
    return value
  }

  /// All together: none does anything.
  private func measure() throws -> [String: Int] {
    let daemons = [("run", "Minimal", []), ("runAndExit", "OursSync", ["actor"])]
    let children = try daemons.map { name, program, arguments in
      (name, try Child(Program(path: "\(directory)/release/\(program)", arguments: arguments)))
    }
    defer { for (_, child) in children { child.end() } }
    for (_, child) in children { try child.untilReady() }
    // The last one-off check of the signals' handlers is 10 s after the launch.
    pause(milliseconds: 12_000)
    let before = try children.map { try Accounting(of: $0.1) }
    pause(milliseconds: 10_000)
    var counts: [String: Int] = [:]
    for ((name, child), earlier) in zip(children, before) {
      let now = try Accounting(of: child)
      counts[name] = now.contextSwitches - earlier.contextSwitches
      if name == "run" { counts["threads"] = now.threads }
    }
    counts["timers"] = timers(of: children[0].1.pid)
    return counts
  }

  private func timers(of pid: Int32) -> Int {
    let folder = "/proc/\(pid)/fd"
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return files.count {
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
      return link?.contains("timerfd") == true
    }
  }

  // MARK: The watchdog

  /// With a period of a second, in ten of them.
  static func switchesPerWatchdogPeriod(_ program: Program, in directory: String) throws -> Double {
    let manager = try ServiceManager(path: "\(directory)/notify")
    var program = program
    program.environment = ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"]
    let child = try Child(program)
    defer { child.end() }
    try child.untilReady()
    _ = manager.pings(for: 2500)
    let before = try Accounting(of: child)
    let pings = manager.pings(for: 10_000)
    let after = try Accounting(of: child)
    guard pings >= 10 else { throw HarnessError("\(pings) pings of the watchdog in 10 s") }
    return Double(after.contextSwitches - before.contextSwitches) / 10
  }
}

/// The receiving end of NOTIFY_SOCKET.
private final class ServiceManager {
  let path: String
  private let descriptor: Int32

  init(path: String) throws {
    self.path = path
    unlink(path)
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard path.utf8.count < capacity else { throw HarnessError("\(path) is too long for a socket") }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let failure = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard failure == 0 else { throw HarnessError("bind \(path): errno \(errno)") }
  }

  deinit { close(descriptor) }

  /// Those that come meanwhile. Taken from the queue as they come, since it is short.
  func pings(for milliseconds: Int) -> Int {
    (0..<milliseconds / 50).reduce(0) { count, _ in
      pause(milliseconds: 50)
      return count + pings()
    }
  }

  private func pings() -> Int {
    var count = 0
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let length = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      guard length > 0 else { return count }
      if String(decoding: buffer[..<length], as: UTF8.self).contains("WATCHDOG=1") { count += 1 }
    }
  }
}
