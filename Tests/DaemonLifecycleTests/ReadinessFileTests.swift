// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonLifecycleFiles

/// How the readiness file is made and removed, and what happens when that fails.
@Suite("Readiness: the file", .timeLimit(.minutes(5))) struct ReadinessFileTests {
  private let folder: Folder
  private let log = Log()
  private var path: String { folder.path("ready") }

  init() throws { folder = try Folder() }

  private func marker(_ path: String? = nil) -> ReadinessFile {
    ReadinessFile(path ?? self.path) { [log] in log.add($0) }
  }

  @Test func whatADeadProcessHasLeftGoesBeforeTheLaunch() throws {
    try folder.write("ready\npid 1\n", to: "ready")
    try folder.write("rea", to: ".ready.new")
    let marker = marker()
    marker.open()
    #expect(folder.names == [".ready.new"])
    marker.show(true, number: 1)
    #expect(folder.names == ["ready"] && log.all == [])
    #expect(try folder.text("ready").hasPrefix("ready\npid \(getpid())\nsince 2"))
    marker.open()
    #expect(folder.names == ["ready"])
  }

  /// A set-up may be long, and fail.
  @Test func itGoesBeforeTheSetUp() async throws {
    try folder.write("ready\npid 1\n", to: "ready")
    let (path, log) = (path, log)
    var configuration = LifecycleConfiguration(signals: [:], logging: .off)
    configuration.interfaces = [.readinessFile(path)]
    await #expect(throws: Failure.self) {
      try await LifecycleSubject.run(configuration: configuration) { _ in
        log.add(exists(path) ? "there" : "gone")
        throw Failure()
      }
    }
    #expect(log.all == ["gone"] && !exists(path))
  }

  @Test func whatCouldNotBeRemovedAtOnceGoesLater() throws {
    // A directory, which unlink(2) does not remove.
    mkdir(path, 0o700)
    let marker = marker()
    marker.open()
    #expect(log.all.count == 1)
    #expect(marker.show(false, number: 1) != nil)
    rmdir(path)
    #expect(folder.names == [])
    try folder.write("ready", to: "ready")
    #expect(marker.wake { _ in } == nil && folder.names == [])
  }

  /// What combines with a slash makes one character of both.
  @Test(arguments: ["\u{347}ready", "\u{347}/ready", "run/\u{347}ready"])
  func aPathIsBytes(name: String) {
    if let slash = name.utf8.firstIndex(of: UInt8(ascii: "/")) {
      mkdir(folder.path(String(name[..<slash])), 0o700)
    }
    let marker = marker(folder.path(name))
    marker.open()
    marker.show(true, number: 1)
    #expect(exists(folder.path(name)) && log.all == [])
  }

  /// A link in its place is replaced, and what it leads to stays as it is.
  @Test(arguments: ["ready", ".ready.new"])
  func aLinkIsNotFollowed(name: String) throws {
    try folder.write("mine", to: "elsewhere")
    symlink(folder.path("elsewhere"), folder.path(name))
    let marker = marker()
    marker.show(true, number: 1)
    #expect(folder.names == ["elsewhere", "ready"])
    marker.show(false, number: 2)
    #expect(try folder.names == ["elsewhere"] && folder.text("elsewhere") == "mine")
    #expect(log.all == [])
  }

  @Test func oneThatWasTakenAwayIsMadeAgain() {
    let marker = marker()
    marker.show(true, number: 1)
    unlink(path)
    marker.show(false, number: 2)
    marker.show(true, number: 3)
    #expect(folder.names == ["ready"] && log.all == [])
  }

  /// At the next check of the daemon's health.
  @Test func oneThatWasTakenAwayComesBack() async throws {
    let mock = MockLifecycleSubject(
      configuration: .init(
        logging: .off, interfaces: .standard + [.readinessFile(path)]))
    try await mock.waitUntilInForeground()
    #expect(exists(path))
    unlink(path)
    mock.core.take(.watchdogTick(stall: .zero))
    #expect(exists(path))
    // One that is not ready needs none.
    mock.inject(.sigusr1)
    mock.core.take(.watchdogTick(stall: .zero))
    #expect(!exists(path))
  }

  @Test func anOlderChangeHasNoEffect() {
    let marker = marker()
    marker.show(false, number: 2)
    marker.show(true, number: 1)
    #expect(folder.names == [])
    marker.show(true, number: 3)
    marker.show(false, number: 2)
    #expect(folder.names == ["ready"])
  }

  // MARK: Problems

  @Test(arguments: ["", "ready", "run/ready", "/run/", "/", "/run/..", "/run/.", "/run/a\0b"])
  func aPathThatIsNoFilesIsLogged(path: String) {
    let marker = marker(path)
    marker.open()
    marker.show(true, number: 1)
    marker.show(false, number: 2)
    #expect(log.all.count == 1 && log.all[0].contains("not the absolute path"), "\(log.all)")
  }

  @Test func aMissingDirectoryIsLoggedOnce() {
    let marker = marker(folder.path("run/ready"))
    marker.open()
    marker.show(true, number: 1)
    #expect(
      log.all == [
        "The readiness file \(folder.path("run/ready")): could not make it: No such file or directory (errno 2)."
      ])
  }

  /// Of a disk that is full, no half of a file appears.
  @Test func aWriteThatFailsLeavesNothing() throws {
    // A directory that is in the way of the rename, with something in it.
    mkdir(path, 0o700)
    try folder.write("", to: "ready/x")
    let marker = marker()
    marker.show(true, number: 1)
    #expect(folder.names == ["ready"])
    #expect(log.all.count == 1 && log.all[0].contains("could not make it"), "\(log.all)")
  }

  /// What is tried again is no change, with which it would be tried at once.
  @Test func whatCannotBeRemovedIsTriedAgainLater() async throws {
    mkdir(folder.path("ready"), 0o700)
    let marker = marker(folder.path("ready"))
    let core = LifecycleCore(configuration: LifecycleConfiguration(), parts: [marker])
    defer { core.close() }
    try core.listen(to: marker)
    core.hold().cancel()
    #expect(log.all.count == 1 && log.all[0].contains("could not remove it"), "\(log.all)")
    rmdir(folder.path("ready"))
    _ = await core.launch()
    #expect(exists(folder.path("ready")))
  }

  /// Without another change: a daemon that goes on serving must not look unready for a disk that was full once.
  @Test func whatFailsIsTriedAgainUntilItSucceeds() async throws {
    mkdir(folder.path("run"), 0o700)
    try folder.write("", to: "file")
    /// Has the marker's directory lead elsewhere, in one step.
    func lead(to name: String) {
      symlink(folder.path(name), folder.path("next"))
      #expect(rename(folder.path("next"), folder.path("link")) == 0)
    }
    lead(to: "file")
    let marker = marker(folder.path("link/ready"))
    let core = LifecycleCore(configuration: LifecycleConfiguration())
    defer { core.close() }
    try core.listen(to: marker)
    core.show(([marker], isReady: true, number: 1))
    #expect(log.all.count == 1 && log.all[0].contains("could not make it"), "\(log.all)")
    lead(to: "run")
    try await eventually { exists(folder.path("run/ready")) }
    // It is seen before the marker has noted it.
    try await eventually { marker.wake { _ in } == nil }
    lead(to: "file")
    core.show(([marker], isReady: false, number: 2))
    #expect(log.all.count == 2 && log.all[1].contains("could not remove it"), "\(log.all)")
    lead(to: "run")
    try await eventually { !exists(folder.path("run/ready")) }
    #expect(log.all.count == 2)
  }
}
