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
  private let daemon: BusDaemon
  private let session: BusSession

  init() throws {
    daemon = try BusDaemon()
    session = BusSession(.address(daemon.address), options: BusTests.options)
    session.start()
    // The daemon needs a moment, and what is asked for before that is refused.
    let connected = BusLog<Bool>()
    let watch = session.observe(BusSessionObserver { _ in connected.append(true) })
    #expect(pump(session, nil) { !connected.all.isEmpty })
    watch.cancel()
  }

  @Test func callsAndErrors() {
    let results = BusLog<Result<[BusValue], BusError>>()
    session.call(BusObject.bus.method("NameHasOwner"), arguments: ["org.freedesktop.DBus"]) {
      results.append($0)
    }
    session.call(BusObject.bus.method("NoSuch")) { results.append($0) }
    #expect(pump(session, nil) { results.all.count == 2 })
    #expect(results.all[0] == .success([.bool(true)]))
    guard case .failure(.call(_, "org.freedesktop.DBus.Error.UnknownMethod", _, _)) = results.all[1]
    else {
      Issue.record("\(results.all)")
      return
    }
  }

  @Test func absentServicesAreErrors() throws {
    let failures = BusLog<BusError>()
    Systemd1(session).timeoutStop { if case .failure(let error) = $0 { failures.append(error) } }
    Login1(session).inhibit(.sleep, who: "w", why: "y") {
      if case .failure(let error) = $0 { failures.append(error) }
    }
    let watch = Systemd1(session).watchActiveState(of: try UnitName("x.service")) {
      if case .failure(let error) = $0 { failures.append(error) }
    }
    #expect(pump(session, nil) { failures.all.count >= 4 })
    for error in failures.all {
      if case .call(_, "org.freedesktop.DBus.Error.ServiceUnknown", _, _) = error { continue }
      Issue.record("\(error)")
    }
    watch.cancel()
  }

  /// A second session comes and goes; the first one hears of it, over a death of the bus.
  @Test func signalsOverALostBus() throws {
    let names = BusLog<String>()
    let connections = BusLog<Bool>()
    let installed = BusLog<Bool>()
    let watch = session.observe(
      BusSessionObserver { connection in
        connections.append(true)
        connection.match(.signal("NameOwnerChanged", of: BusObject.bus)) { signal in
          guard case .success(let signal) = signal,
            case .string(let name)? = signal.arguments.first
          else { return }
          names.append(name)
        }
        // Answered in order.
        connection.call(BusObject.bus.method("GetId")) { _ in installed.append(true) }
      })
    for round in 1...2 {
      #expect(pump(session, nil) { installed.all.count == round })
      let heard = names.all.count
      let other = BusSession(.address(daemon.address), options: BusTests.options)
      other.start()
      #expect(
        pump(session, nil) {
          other.process()
          return names.all.count >= heard + 1
        })
      other.close()
      #expect(pump(session, nil) { names.all.count >= heard + 2 })
      if round == 1 { try daemon.restart() }
    }
    #expect(connections.all.count == 2)
    watch.cancel()
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
    directory = NSTemporaryDirectory() + "dbus-" + UUID().uuidString.prefix(8)
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
