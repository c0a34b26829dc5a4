// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// The watchdog at 1 s: what it costs, and that it does ping.
enum Watchdog: Row {
  static let name = "watchdog"

  static func run(_ bench: Bench) throws {
    let row = "watchdog at 1 s"
    let seconds = bench.isQuick ? 10 : 60
    let manager = try ServiceManager(path: bench.directory + "/scratch/notify")
    var program = bench.swift("Minimal")
    program.environment = ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"]
    progress("\(row): \(seconds) s")
    let child = try Child(program)
    defer { child.end() }
    try child.untilReady()
    _ = manager.pings(for: 2500)
    let before = try Accounting(of: child)
    let pings = Double(manager.pings(for: seconds * 1000))
    let after = try Accounting(of: child)
    let periods = Double(seconds)
    let wakeups = Double(after.contextSwitches - before.contextSwitches) / periods
    let hourly = Double(after.ran - before.ran) / periods * 3600 / 1_000_000
    bench.results.record(row, "ours", "pings", "/period", [pings / periods])
    bench.results.record(row, "ours", "wake-ups", "/period", [wakeups])
    bench.results.record(row, "ours", "CPU", "ms/hour", [hourly])
    guard pings >= periods else { throw HarnessError("\(pings) pings in \(seconds) s") }
    bench.results.judge(row, "wake-ups (context switches) a period ≤ 4", wakeups, atMost: 4, "")
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
