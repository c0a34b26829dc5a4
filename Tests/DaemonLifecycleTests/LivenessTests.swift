// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Glibc
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonLifecycleFiles

/// When the liveness file is touched, and what is said when it can't be.
@Suite("Liveness", .timeLimit(.minutes(5))) struct LivenessTests {
  private let folder: Folder
  private var path: String { folder.path("alive") }

  init() throws { folder = try Folder() }

  private func mock(
    _ state: LifecycleState = .foreground, stopDelay: Duration = .zero
  ) -> MockLifecycleSubject {
    MockLifecycleSubject(
      state: state,
      configuration: .init(
        stopDelay: stopDelay, logging: .off, interfaces: .standard + [.livenessFile(path)]))
  }

  @Test func itAppearsWhenTheLaunchHasEnded() async throws {
    let mock = mock(.launching)
    mock.on(WillEnterForeground.self) { [path] _ in #expect(!exists(path)) }
    try await mock.launch()
    #expect(exists(path))
  }

  @Test func oneThatIsWellIsTouchedAlsoWhilePaused() async throws {
    let mock = mock()
    try await mock.waitUntilInForeground()
    for _ in 1...2 {
      age(path)
      #expect(isOld(path))
      try await mock.send(.checkHealth)
      await mock.advance(by: .zero)
      #expect(!isOld(path))
      try await mock.send(.sigusr1)
    }
  }

  @Test func oneThatIsSickIsNot() async throws {
    let mock = mock()
    mock.on(CheckHealth.self) { _ in throw Failure() }
    try await mock.waitUntilInForeground()
    age(path)
    try await mock.send(.checkHealth)
    #expect(isOld(path))
  }

  /// As where something in it waits for ever once it is cancelled.
  @Test func oneWhoseWorkCannotBeginAgainIsSick() async throws {
    let (mock, ends, rounds) = (mock(), Gate(), Log())
    mock.addForeground(name: "consumer") { _ in
      rounds.add("round")
      await ends.wait()
    }
    try await mock.waitUntilInForeground()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(20))
    mock.inject(.sigusr2)
    await mock.advance(by: .seconds(1))
    age(path)
    try await mock.send(.checkHealth)
    #expect(isOld(path))
    ends.open()
    try await eventually { rounds.all.count == 2 }
    try await mock.send(.checkHealth)
    #expect(!isOld(path))
  }

  /// Being killed for a blocked pool would cost the save.
  @Test func aStopIsNotAskedNorADrain() async {
    let mock = mock(stopDelay: .seconds(5))
    mock.inject(.sigterm)
    age(path)
    mock.core.take(.watchdogTick(stall: .zero))
    #expect(!isOld(path))
  }

  @Test(arguments: ["directory", "link", "pipe", "relative", "missing"])
  func whatIsInItsPlaceStays(kind: String) throws {
    var path = path
    switch kind {
    case "directory": mkdir(path, 0o700)
    case "link":
      try folder.write("", to: "elsewhere")
      symlink(folder.path("elsewhere"), path)
    case "pipe": mkfifo(path, 0o600)
    case "relative": path = "alive"
    default: path = folder.path("run/alive")
    }
    let names = folder.names
    let log = Log()
    let file = LivenessFile(path) { log.add($0) }
    file.receive(.healthy)
    file.receive(.healthy)
    #expect(log.all.count == 1 && log.all[0].hasPrefix("The liveness file \(path) could not"))
    #expect(folder.names == names)
  }

  @Test func theShorterPeriodCounts() {
    for (watchdog, period) in [(nil, 30), (10, 10), (90, 30)] as [(Int?, Int)] {
      var configuration = LifecycleConfiguration(interfaces: .standard + [.livenessFile(path)])
      var variables = ["NOTIFY_SOCKET": "@liveness-\(getpid())"]
      variables["WATCHDOG_USEC"] = watchdog.map { "\($0)000000" }
      configuration.environment = ServiceEnvironment(variables)
      let wiring = LifecycleWiring(configuration)
      #expect(wiring.watchdogPeriod == .seconds(period))
      #expect(wiring.parts.filter { $0 is WatchdogSource }.count == 1)
    }
  }

  /// A daemon that pings by a rule of its own would otherwise be pinged for.
  @Test(arguments: [false, true]) func theWatchdogIsPingedOnRequestAlone(pings: Bool) async throws {
    let manager = try FakeServiceManager()
    var configuration = LifecycleConfiguration(
      interfaces: [.serviceManager(watchdog: pings), .livenessFile(path)])
    configuration.environment = ServiceEnvironment(
      manager.environment.merging(["WATCHDOG_USEC": "30000000"]) { $1 })
    let wiring = LifecycleWiring(configuration)
    for part in wiring.parts { _ = part.receive(.healthy) }
    for part in wiring.parts { _ = part.receive(.terminating(LifecycleCause(.api))) }
    _ = try await manager.next { $0["STOPPING"] == "1" }
    #expect(manager.messages.contains { $0["WATCHDOG"] == "1" } == pings)
  }

  @Test func aReadinessFileOfTheSamePathIsAProblem() {
    let same = LifecycleConfiguration(
      interfaces: .plain + [.readinessFile("/run/a"), .livenessFile("/run/a")])
    #expect(LifecycleWiring(same).problems.count == 1)
    let apart = LifecycleConfiguration(
      interfaces: .plain + [.readinessFile("/run/a"), .livenessFile("/run/b")])
    #expect(LifecycleWiring(apart).problems.isEmpty)
  }
}
