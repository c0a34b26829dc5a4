// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Foundation
import Synchronization

/// Posts to one centre what one lifecycle delivers.
final class NotificationPoster: Sendable {
  private let center: NotificationCenter
  private let isTyped: Bool
  /// The subject of typed messages. It is alive whenever one of its hooks calls.
  private weak let core: LifecycleCore?

  init(_ center: NotificationCenter, typed isTyped: Bool, core: LifecycleCore) {
    self.center = center
    self.isTyped = isTyped
    self.core = core
    if isTyped { Self.prepareForMessages(center) }
  }

  /// In a hook of the bridge's. Observers by name run here and now; the typed ones are only enqueued, on Swift's
  /// cooperative pool, and go first so that a slow one of the others does not keep them waiting.
  func post<N: BridgedNotification>(_ notification: N) {
    if isTyped, let core {
      center.post(Self.detached(notification), subject: core)
    }
    var named = N.makeNotification(notification)
    named.name = N.name
    // Also what tells those who adopt notifications that this one goes out.
    named.object = notification
    center.post(named)
  }

  /// With a context that never becomes stale, for those who receive it when the hook is over.
  private static func detached<N: LifecycleNotification>(_ notification: N) -> N {
    guard var own = notification as? any _PackageNotification else { return notification }
    own.context = LifecycleContext(cause: own.cause, time: own.time)
    return own as? N ?? notification
  }

  /// Foundation makes the queue of a centre's typed observers at the first message for one, without a lock: two
  /// threads at once can crash there. So there is one before a hook posts.
  private static func prepareForMessages(_ center: NotificationCenter) {
    preparing.withLock { _ in
      let token = center.addObserver(
        of: LifecycleCore.self, for: NotificationCenter.BaseMessageIdentifier<Preparation>()
      ) { _ in }
      center.post(Preparation())
      center.removeObserver(token)
    }
  }

  private static let preparing = Mutex(())

  private struct Preparation: NotificationCenter.AsyncMessage {
    typealias Subject = LifecycleCore
  }
}
