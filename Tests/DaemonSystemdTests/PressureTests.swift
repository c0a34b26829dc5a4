// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

@Suite(.offThePool) struct PressureTests {
  private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  // MARK: Variables

  /// Off is off, whatever there would be to fall back to; the own control group's is watched where it can be.
  @Test func offMeansOff() throws {
    func hasSource(_ variables: [String: String], _ isUsed: Bool = true) -> Bool {
      var wiring = LifecycleWiring(ServiceEnvironment(variables), isSupervised: false) { _ in }
      wiring.connect(isUsed ? .plain + [.memoryPressure] : .plain)
      return wiring.parts.contains { $0 is PressureSource }
    }
    #expect(hasSource(["MEMORY_PRESSURE_WATCH": "/run/x"]))
    #expect(!hasSource(["MEMORY_PRESSURE_WATCH": "/run/x"], false))
    #expect(!hasSource(["MEMORY_PRESSURE_WATCH": "/dev/null"]))
    #expect(try hasSource([:]) == (PressureWatch.ownCgroup() != nil))
  }

  // MARK: /proc/self/cgroup

  @Test func theUnifiedPathIsFound() throws {
    let mixed = "9:name=systemd:/\n1:cpu:/a\n0::/system.slice/a:b.service\n"
    #expect(
      try PressureWatch.path(inCgroupFile: Self.bytes(mixed)) == "/system.slice/a:b.service")
    #expect(try PressureWatch.path(inCgroupFile: Self.bytes("1:cpu:/a\n")) == nil)
    #expect(try PressureWatch.path(inCgroupFile: []) == nil)
  }

  @Test(arguments: [
    ("0::/a.slice/b\n", ["/sys/fs/cgroup/a.slice/b", "/sys/fs/cgroup"]),
    ("0::/\n", ["/sys/fs/cgroup"]), ("0::/../b\n", []), ("1:cpu:/a\n", []),
  ])
  func theGroupsOwnFolderIsLikelierThanTheRoot(file: String, folders: [String]) throws {
    let path = try PressureWatch.path(inCgroupFile: Self.bytes(file))
    #expect(PressureWatch.folders(path) == folders)
  }

  @Test func aFileOfTheKernelsIsReadWhole() throws {
    #expect(try readProcFile("/proc/sys/kernel/ostype") == Self.bytes("Linux\n"))
  }

  @Test(arguments: ["0::", "0::a", "0:", "x::/", ":cpu:/", "\0"])
  func aMalformedCgroupFileIsAnError(text: String) {
    #expect(throws: SystemdError.self) {
      try PressureWatch.path(inCgroupFile: Self.bytes(text))
    }
  }

  // MARK: What can't be watched

  /// Why this can't be watched.
  private func objection(to path: String, write: [UInt8] = [1]) -> String {
    let source = PressureSource(PressureWatch(path: path, write: write))
    do { try source.open() } catch { return "\(error)" }
    return "none"
  }

  @Test func whatCannotBeWatchedIsReportedInASentence() throws {
    let path = shortTemporaryFolder + "pressure-" + UUID().uuidString.prefix(8)
    defer { unlink(path) }
    #expect(objection(to: path).contains("No such file"))
    #expect(objection(to: "/tmp").contains("Is a directory"))
    #expect(mkfifo(path, 0o600) == 0)
    #expect(objection(to: path).contains("is not one of the kernel's pressure files"))
    unlink(path)
    close(creat(path, 0o600))
    #expect(objection(to: path).contains("nothing was written into it"))
    var status = stat()
    stat(path, &status)
    #expect(status.st_size == 0)
  }

  /// Root could write to it, and the kernel would obey.
  @Test(
    .enabled(if: geteuid() == 0, "Needs root, who may write to it."),
    arguments: ["/proc/sys/kernel/panic_on_oops", "/proc/self/oom_score_adj"])
  func anotherFileOfTheKernelsIsNotWrittenTo(_ path: String) throws {
    // As it is, in case it is written after all.
    let content = try readProcFile(path)
    try #require(!content.isEmpty)
    #expect(objection(to: path, write: content).contains("nothing was written"))
  }

  // MARK: The kernel's files

  /// The file of the processors is the easiest to have events from; all of them work alike.
  private static func processors(_ milliseconds: Int) -> PressureWatch {
    PressureWatch(
      path: "/proc/pressure/cpu", write: bytes("some \(milliseconds)000 2000000\0"))
  }

  private static var canArm: Bool { (try? PressureSource(processors(200)).open()) != nil }

  /// Waits for the descriptor of a source, and has it read.
  private func next(of source: PressureSource) throws -> String {
    let polled = try #require(source.descriptors.first)
    #expect(clinux_descriptor_flags(polled.number) == FD_CLOEXEC)
    var ready = pollfd(fd: polled.number, events: Int16(polled.events), revents: 0)
    #expect(poll(&ready, 1, 30_000) == 1)
    let events = UInt32(UInt16(bitPattern: ready.revents))
    var found = ""
    source.read(PolledDescriptor(number: polled.number, events: events)) {
      let text = if case .fact(.warning(let text)) = $0 { text } else { "pressure" }
      found += text
    }
    return found
  }

  /// Two threads more than processors spin: some task always waits for one.
  @Test(.enabled(if: canArm, "this machine's /proc/pressure can't be written to"))
  func busyProcessorsArePressure() throws {
    let source = PressureSource(Self.processors(1))
    try source.open()
    let load = Load(threads: 2 + max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    defer { load.stop() }
    #expect(try next(of: source) == "pressure")
  }

  @Test(.enabled(if: ScratchGroup.isPossible, "this process can't make control groups here"))
  func aRemovedControlGroupIsGone() async throws {
    let group = try #require(try ScratchGroup())
    let path = group.path + "/memory.pressure"
    let source = PressureSource(PressureWatch(path: path, write: PressureWatch.trigger))
    let warnings = Warnings()
    let core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .background,
      parts: [warnings])
    try core.executor.listen()
    try core.listen(to: source)
    group.remove()
    try await eventually { source.descriptors.isEmpty && !warnings.all.withLock(\.isEmpty) }
    #expect(
      warnings.all.withLock { $0 } == [
        "Memory pressure is not reported any more: \(path) is gone"
      ])
    core.close()
  }

  private final class Warnings: LifecyclePart {
    let isServiceManager = false
    let all = Mutex<[String]>([])

    func receive(_ fact: LifecycleFact) -> MonotonicTime? {
      if case .warning(let text) = fact { all.withLock { $0.append(text) } }
      return nil
    }
  }
}

private final class Load: Sendable {
  private let isOver = Atomic<Bool>(false)

  init(threads: Int) {
    for _ in 0..<threads {
      Thread.detachNewThread { while !self.isOver.load(ordering: .relaxed) {} }
    }
  }

  func stop() { isOver.store(true, ordering: .relaxed) }
}

/// A control group below this process's own.
private final class ScratchGroup {
  static var isPossible: Bool { (try? ScratchGroup()) != nil }

  let path: String
  private var isThere = true

  init?() throws {
    let file = try readProcFile("/proc/self/cgroup")
    let folders = PressureWatch.folders(try PressureWatch.path(inCgroupFile: file))
    guard let own = folders.first else { return nil }
    path = "\(own)/pressure-test-\(UInt64.random(in: 0 ... .max))"
    guard mkdir(path, 0o755) == 0 else { return nil }
    guard access(path + "/memory.pressure", W_OK) == 0 else {
      rmdir(path)
      return nil
    }
  }

  func remove() {
    guard isThere else { return }
    isThere = false
    rmdir(path)
  }

  deinit { remove() }
}
