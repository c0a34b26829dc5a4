// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The source of memory pressure, as the kernel reports it and systemd has set it up.
final class PressureSource: LifecycleSource {
  private let watch: PressureWatch
  private let monitor = Mutex<PressureMonitor?>(nil)

  init(_ watch: PressureWatch) { self.watch = watch }

  /// Polled by the listening thread only: the first poll of a pressure file consumes its event.
  var descriptors: [PolledDescriptor] {
    monitor.withLock { monitor in
      monitor.map { [PolledDescriptor(number: $0.fileDescriptor, events: $0.pollEvents)] } ?? []
    }
  }

  func open() throws(LifecycleError) {
    do throws(SystemdError) {
      let opened = try PressureMonitor(watch)
      monitor.withLock { $0 = opened }
    } catch { throw .unavailable("memory pressure is not reported: \(error)") }
  }

  func read(_: PolledDescriptor) -> [LifecycleMachine.Input] {
    monitor.withLock { monitor in
      switch monitor?.consume() {
      case .pressure:
        return [.event(LifecycleEvent(.pressure, cause: LifecycleCause(.pressure)))]
      case .gone:
        monitor = nil  // closes the descriptor, and with it leaves the poll
        return [.warning("memory pressure is not reported any more: \(watch.path) is gone")]
      case .quiet, nil: return []
      }
    }
  }

  @discardableResult func close() -> [LifecycleMachine.Input] {
    monitor.withLock { $0 = nil }
    return []
  }
}
