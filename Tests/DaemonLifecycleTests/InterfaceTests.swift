// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleFiles
import DaemonLifecycleTesting
import DaemonSystemd
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The list of interfaces, what is said of those that can't be used, and one that an author makes.
@Suite struct InterfaceTests {
  @Test func eachIsThereOnce() {
    var interfaces: LifecycleInterfaces =
      .standard + [.signals([:]), .readinessFile("/a"), .readinessFile("/b"), .readinessFile("/a")]
    interfaces += [.readinessFile("/b")]
    #expect(interfaces.all.count == LifecycleInterfaces.standard.all.count + 2)
    var configuration = LifecycleConfiguration(interfaces: interfaces)
    #expect(configuration.signals[.sigterm] == nil)
    configuration.signals[.sighup] = .reload
    configuration.logging = .off
    #expect(configuration.interfaces.all.count == interfaces.all.count)
    #expect(configuration.signals.signals == [.sighup] && configuration.logging == .off)
    for interface: LifecycleInterface in [.log(), .signals(), .readinessFile("/a")] {
      configuration.interfaces.remove(interface)
    }
    #expect(configuration.signals.signals == [] && configuration.logging == .problems)
    #expect(!configuration.interfaces.contains(.readinessFile("/a")))
    #expect(configuration.interfaces.contains(.readinessFile("/b")))
    let given = LifecycleConfiguration(signals: [:], logging: .off, interfaces: .plain)
    #expect(given.signals.signals == [] && given.logging == .off)
  }

  /// A map that was to add a signal, and has no other: each stop would cost the state.
  @Test func aMapWithoutSIGTERMIsSaid() {
    func problems(_ signals: SignalMap) -> [String] {
      LifecycleWiring(LifecycleConfiguration(signals: signals, logging: .off)).problems
    }
    #expect(problems([.sigquit: .describe]).first?.hasPrefix("SIGTERM is not in the ") == true)
    // One without any is meant so.
    for map: SignalMap in [.standard, [:], [.sigterm: .describe]] { #expect(problems(map) == []) }
  }

  /// A list of one's own: no signal would ever arrive.
  @Test func aListWithoutSignalsIsSaid() {
    func problems(_ interfaces: LifecycleInterfaces) -> [String] {
      LifecycleWiring(LifecycleConfiguration(interfaces: interfaces)).problems
    }
    #expect(problems([.readinessFile("/run/a")]).first?.hasPrefix("No signals are handled") == true)
    #expect(problems([.signals([:])]) == [] && problems(.plain) == [])
  }

  /// It works during a pause, and is cancelled at the end. What it asks for during the launch waits.
  @Test(.timeLimit(.minutes(5))) func anAuthorsOwn() async throws {
    let log = Log()
    let subject = LifecycleSubject(
      configuration: LifecycleConfiguration(
        exitGrace: nil, logging: .off,
        interfaces: [
          .requests(from: "the control socket") { send in
            send(.reload)
            do { try await Task.sleep(for: .seconds(600)) } catch { log.add("cancelled") }
          }
        ]))
    let token = subject.observe(ShouldReload.self) { [weak subject] in
      log.add("\($0.cause)")
      subject?.terminate()
    }
    _ = try await subject.run()
    try await eventually { log.all.last == "cancelled" }
    #expect(log.all == ["the control socket", "cancelled"])
    withExtendedLifetime(token) {}
  }

  private func problems(_ variables: [String: String], processID: Int32 = 1) -> [String] {
    var configuration = LifecycleConfiguration(logging: .off)
    configuration.environment = ServiceEnvironment(variables, processID: processID)
    return LifecycleWiring(configuration, isSupervised: true).problems
  }

  /// systemd 257 counts outside of the unit's pid namespace, and accepts what comes from inside.
  @Test func inANamespaceOfItsOwn257IsWarnedOf() {
    let variables = ["NOTIFY_SOCKET": "@pids-\(getpid())", "SYSTEMD_EXEC_PID": "77"]
    let said = problems(variables)
    #expect(said.count == 1 && said[0].hasPrefix("systemd before version 259 "), "\(said)")
    let other = problems(variables, processID: 78)
    #expect(other.count == 1 && other[0].contains("ignores its notifications"), "\(other)")
  }

  /// In a process of its own, which has no descriptor left.
  @Test(.timeLimit(.minutes(5))) func aSocketThatCannotBeHadIsSaid() async {
    await #expect(processExitsWith: .success) {
      var limit = rlimit(rlim_cur: 3, rlim_max: 3)
      setrlimit(__rlimit_resource_t(7), &limit)
      var configuration = LifecycleConfiguration(logging: .off)
      configuration.environment = ServiceEnvironment(["NOTIFY_SOCKET": "@none"])
      let problems = LifecycleWiring(configuration, isSupervised: true).problems
      guard problems.contains(where: { $0.hasSuffix("No service manager is notified.") }) else {
        print(problems)
        exit(1)
      }
    }
  }

  /// The bus.
  private final class Unopened: LifecyclePart {
    struct Refusal: Error {}
    func open() throws -> MonotonicTime? { throw Refusal() }
    func close() -> [SourceInput] { [.unitJob(nil)] }
  }

  @Test func nobodyWaitsForABusThatCannotBeOpened() {
    let core = LifecycleCore(configuration: .init(logging: .off), asksForUnitJob: true)
    #expect(throws: Unopened.Refusal.self) { try core.listen(to: Unopened()) }
    #expect(core.state.withLock { $0.unitJob == .some(nil) })
    core.close()
  }

  /// In a process of its own, whose zone it changes.
  @Test(.timeLimit(.minutes(5))) func aNewTimeZoneIsFollowed() async {
    await #expect(processExitsWith: .success) {
      func hour() -> String { String(WallClock.now().dropFirst(11).prefix(2)) }
      setenv("TZ", "AAA0", 1)
      let before = hour()
      setenv("TZ", "BBB-9", 1)
      // Within a second of the full hour they may be the same, and never twice.
      guard before != hour() || before != hour() else { exit(1) }
    }
  }
}
