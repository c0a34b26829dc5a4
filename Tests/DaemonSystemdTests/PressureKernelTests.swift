// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonSystemd

/// Against the kernel's own pressure files, where this machine has them and lets this process write to them. That of
/// the processors is the easiest to have events from; all of them work alike.
@Suite(.offThePool) struct PressureKernelTests {
  private static func watch(_ milliseconds: Int) -> PressureWatch {
    PressureWatch(
      path: "/proc/pressure/cpu", write: Array("some \(milliseconds)000 2000000\0".utf8))
  }

  private static var canArm: Bool { (try? PressureMonitor(watch(200))) != nil }

  /// Two threads more than processors spin: some task always waits for one.
  @Test(.enabled(if: canArm, "this machine's /proc/pressure can't be written to"))
  func busyProcessorsArePressure() throws {
    let monitor = try PressureMonitor(Self.watch(1))
    #expect(monitor.form == .file && monitor.pollEvents == UInt32(POLLPRI))
    let load = Load(threads: 2 + max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    defer { load.stop() }
    var ready = pollfd(fd: monitor.fileDescriptor, events: Int16(POLLPRI), revents: 0)
    #expect(poll(&ready, 1, 30_000) == 1)
    #expect(Int32(ready.revents) == POLLPRI)
    #expect(monitor.consume() == .pressure)
  }

  @Test(.enabled(if: ScratchGroup.isPossible, "this process can't make control groups here"))
  func aRemovedControlGroupIsGone() throws {
    let group = try #require(try ScratchGroup())
    let monitor = try PressureMonitor(
      PressureWatch(path: group.path + "/memory.pressure", write: PressureWatch.trigger))
    #expect(monitor.consume() == .pressure)
    group.remove()
    var ready = pollfd(fd: monitor.fileDescriptor, events: Int16(POLLPRI), revents: 0)
    #expect(poll(&ready, 1, 30_000) == 1)
    #expect(Int32(ready.revents) & POLLERR != 0)
    #expect(monitor.consume() == .gone)
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
    path = "\(own)/pressure-test-\(getpid())"
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
