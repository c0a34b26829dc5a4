// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The source of memory pressure, as the kernel reports it and systemd has set it up.
final class PressureSource: LifecyclePart {
  private let watch: PressureWatch
  private let file = Mutex<OwnedDescriptor?>(nil)

  init(_ watch: PressureWatch) { self.watch = watch }

  /// For the listening thread alone: the first poll(2) or epoll_ctl(2) on a pressure file takes its event.
  var descriptors: [PolledDescriptor] {
    guard let number = file.withLock({ $0?.rawValue }) else { return [] }
    return [PolledDescriptor(number: number, events: UInt32(POLLPRI))]
  }

  func loseDescriptors() -> Bool { false }

  @discardableResult func open() throws -> MonotonicTime? {
    try file.withLock { $0 = try watch.open() }
    return nil
  }

  @discardableResult func read(_ ready: PolledDescriptor, _ take: (SourceInput) -> Void)
    -> MonotonicTime?
  {
    if ready.events & UInt32(POLLERR) == 0 {
      take(.event(LifecycleEvent(.pressure, cause: LifecycleCause(.pressure))))
      return nil
    }
    // Its control group is gone.
    close()
    take(.fact(.warning("Memory pressure is not reported any more: \(watch.path) is gone")))
    return nil
  }

  @discardableResult func close() -> [SourceInput] {
    file.withLock { $0 = nil }
    return []
  }
}

extension LifecycleInterface {
  /// Memory pressure, as the service's unit configures it (`MemoryPressureWatch=`), else in the process's control
  /// group, if it may watch that.
  public static var memoryPressure: Self {
    Self("memory pressure", .service) { wiring in
      do throws(SystemdError) {
        var watch = try wiring.environment.pressureWatch
        if watch == nil { watch = try .ownCgroup() }
        if let watch, !watch.isOff { wiring.parts.append(PressureSource(watch)) }
      } catch { wiring.note("\(error)") }
    }
  }
}
