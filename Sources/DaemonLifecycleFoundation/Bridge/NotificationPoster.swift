// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Foundation
import Synchronization

/// Posts the notifications of one lifecycle to one centre.
final class NotificationPoster: Sendable {
  private let center: NotificationCenter
  private let isTyped: Bool
  /// The subject of typed messages. It exists whenever one of its hooks calls.
  private weak let core: LifecycleCore?

  init(_ center: NotificationCenter, typed isTyped: Bool, core: LifecycleCore) {
    self.center = center
    self.isTyped = isTyped
    self.core = core
    if isTyped { Self.prepareForMessages(center) }
  }

  /// Posts a notification, in a hook of the bridge. Observers by name run here. Typed observers are only enqueued, on
  /// Swift's cooperative pool, and first, so that a slow observer by name does not delay them.
  func post<N: BridgedNotification>(_ notification: N) {
    if isTyped, let core {
      center.post(Self.detached(notification), subject: core)
    }
    var named = N.makeNotification(notification)
    named.name = N.name
    // By this object, adoptions recognize a notification that a bridge has posted.
    named.object = notification
    center.post(named)
  }

  /// The notification with a context that stays current, for observers that receive it when the hook has ended.
  private static func detached<N: LifecycleNotification>(_ notification: N) -> N {
    guard var own = notification as? any StandardNotification else { return notification }
    own.context = LifecycleContext(cause: own.cause, time: own.context.time)
    return own as? N ?? notification
  }

  /// Foundation creates the queue of a centre's typed observers at the first message, without a lock: two threads at
  /// the same time can crash there. So this creates it before a hook posts.
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
