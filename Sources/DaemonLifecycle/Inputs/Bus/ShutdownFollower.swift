// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The follower of the machine's shutdown, which logind announces before SIGTERM: state is saved, and the shutdown is
/// delayed until then if logind grants a delay lock.
final class ShutdownFollower: BusFollower {
  private enum Save {
    case none
    /// Becomes `running` with the next save that begins.
    case wanted
    /// Becomes `none` with its end.
    case running
  }

  private let save = Mutex(Save.none)
  private let lock = DelayLock(
    .shutdown, .shutdownLock, consequence: "a shutdown does not wait for the save")

  func begin(on session: BusSession, _ inbox: BusInbox) {
    lock.begin(on: session, inbox)
    session.follow(.shutdown) { [weak self] news in
      self?.take(news, inbox)
      return true
    }
  }

  private func take(_ news: Result<BusAnswer, BusError>, _ inbox: BusInbox) {
    switch news {
    case .success(let shutdown) where shutdown.isOn:
      lock.setAnnounced()
      save.withLock { $0 = .wanted }
      let fact = "the machine is about to \(Self.phrase(shutdown.text))"
      inbox.put(.event(LifecycleEvent(.saveState, cause: LifecycleCause(.bus(fact)))))
    case .success:
      save.withLock { $0 = .none }
      lock.setOver()
    case .failure(let error): inbox.warn(error, without: "the machine's shutdown")
    }
  }

  private static func phrase(_ kind: String?) -> String {
    switch kind {
    // The first is what logind 257 sends, the second what its man page says.
    case "poweroff", "power-off": "power off"
    case "reboot": "reboot"
    case "halt": "halt"
    case "kexec": "start another kernel"
    case "soft-reboot": "restart its user space"
    case let word?: "shut down (\(word))"
    case nil: "shut down"
    }
  }

  /// Releases the lock when the requested save has ended.
  func receive(_ fact: LifecycleFact) {
    let isOver = save.withLock { save in
      switch (fact, save) {
      case (.began(.saveState, _, _), .wanted): save = .running
      case (.ended(.saveState, _, _, _), .running):
        save = .none
        return true
      default: break
      }
      return false
    }
    if isOver { lock.release() }
  }
}
