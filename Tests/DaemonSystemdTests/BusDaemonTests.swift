// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import TestSupport
import Testing

@testable import DaemonSystemd

/// Against a real dbus-daemon on a socket of its own.
@Suite(
  .enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"),
  .enabled(if: BusDaemon.path != nil, "dbus-daemon is not installed"), .offThePool)
struct BusDaemonTests {
  /// Nobody has the names of systemd and logind there.
  @Test func absentServicesAreErrorsOverALostBus() throws {
    let daemon = try BusDaemon()
    let session = BusSession(.address(daemon.address), options: BusTests.options)
    let failures = BusLog<BusError>()
    func note(_ matter: BusMatter) -> BusSession.Item {
      session.follow(matter) { answer in
        if case .failure(let error) = answer, !error.isAbsence { failures.append(error) }
        return true
      }
    }
    _ = note(.stopTimeout)
    _ = note(.delayLock(.sleep))
    _ = note(.sleep)
    _ = note(.activeState(try UnitName("x.service")))
    session.start()
    // A unit has two: what is asked for, and the signals.
    #expect(pump(session, nil) { failures.all.count == 5 })
    try daemon.restart()
    #expect(pump(session, nil) { failures.all.count == 10 })
    for error in failures.all where !error.description.contains("Error.ServiceUnknown") {
      Issue.record("\(error)")
    }
  }
}

/// A dbus-daemon that ends with this object.
private final class BusDaemon {
  static let path = ["/usr/bin/dbus-daemon", "/bin/dbus-daemon", "/usr/local/bin/dbus-daemon"]
    .first { (path: String) in access(path, X_OK) == 0 }

  let address: String
  private let directory: String
  private var process = Process()

  init() throws {
    directory = shortTemporaryFolder + "dbus-" + UUID().uuidString.prefix(8)
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    address = "unix:path=\(directory)/bus"
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
       "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig><listen>\(address)</listen><auth>EXTERNAL</auth>
      <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
      <allow user="*"/></policy></busconfig>
      """
    try configuration.write(toFile: directory + "/conf", atomically: true, encoding: .utf8)
    try start()
  }

  /// A session that comes too early connects again by itself.
  private func start() throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: Self.path ?? "")
    process.arguments = ["--config-file=\(directory)/conf", "--nofork", "--nopidfile"]
    try process.run()
  }

  func restart() throws {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    unlink(directory + "/bus")
    try start()
  }

  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    try? FileManager.default.removeItem(atPath: directory)
  }
}
