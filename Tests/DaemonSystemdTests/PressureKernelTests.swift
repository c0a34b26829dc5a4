// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonSystemd

/// Against the kernel's own pressure files, where this machine has them and lets this process write to them.
@Suite(.offThePool) struct PressureKernelTests {
  private static func canArm(_ resource: PressureResource) -> Bool {
    (try? PressureMonitor(.systemWide(for: resource))) != nil
  }

  @Test(
    .enabled(if: canArm(.cpu), "this machine's /proc/pressure can't be written to"),
    arguments: PressureResource.allCases)
  func everyResourceCanBeArmed(resource: PressureResource) throws {
    let monitor = try PressureMonitor(.systemWide(for: resource))
    #expect(monitor.form == .file)
    #expect(monitor.pollEvents == UInt32(POLLPRI))
    #expect(monitor.consume() == .pressure, "armed, it is no error")
  }

  @Test(.enabled(if: canArm(.cpu), "this machine's /proc/pressure can't be written to"))
  func aTriggerThatTheKernelRefusesIsExplained() {
    let watch = PressureWatch(path: "/proc/pressure/cpu", write: Array("some 1 1\0".utf8))
    #expect {
      _ = try PressureMonitor(watch)
    } throws: { error in
      "\(error)".contains("a multiple of 2 s")
    }
  }

  /// Two threads more than processors spin: some task always waits for one.
  @Test(.enabled(if: canArm(.cpu), "this machine's /proc/pressure can't be written to"))
  func busyProcessorsArePressure() throws {
    let watch = PressureWatch(path: "/proc/pressure/cpu", write: Array("some 1000 2000000\0".utf8))
    let monitor = try PressureMonitor(watch)
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
    let watch = PressureWatch(path: group.path + "/cpu.pressure", write: PressureWatch.trigger)
    let monitor = try PressureMonitor(watch)
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
    guard let own = try PressureCgroup.folders().first else { return nil }
    path = "\(own)/pressure-test-\(getpid())"
    guard mkdir(path, 0o755) == 0 else { return nil }
    guard access(path + "/cpu.pressure", W_OK) == 0 else {
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
