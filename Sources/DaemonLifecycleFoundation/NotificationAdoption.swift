// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

extension LifecycleObservable {
  /// Delivers the posts of a `NotificationCenter` as notifications of the lifecycle, until the returned token is
  /// released or cancelled.
  ///
  /// ```swift
  /// struct CacheInvalidated: CustomNotification { let key: String }
  ///
  /// let adoption = lifecycle.adopt(Notification.Name("CacheInvalidated")) {
  ///   ($0.userInfo?["key"] as? String).map { CacheInvalidated(key: $0) }
  /// }
  /// let token = lifecycle.observe(CacheInvalidated.self) { cache.drop($0.key) }
  /// ```
  ///
  /// The closure runs on the poster's thread, perhaps with the poster's locks held, so it should only read the
  /// notification. The returned notification is queued, and its hooks are called later, in the order of the posts. An
  /// error of the closure is a failed hook of `NotificationAdopter` in a report, and in the log. Once the termination
  /// has begun, nothing more is delivered, as with `post`. May be called from any thread.
  ///
  /// Notifications whose `object` is a notification of the lifecycle, such as a bridge's, are not passed to the
  /// closure. So a bridge's posts are never adopted, under any name or by any lifecycle, and adopted notifications,
  /// which are custom, are posted by no bridge.
  ///
  /// - Parameters:
  ///   - name: The name of the notifications to adopt; `nil` for every name.
  ///   - center: The centre to observe. Default: the default centre.
  ///   - make: Makes the lifecycle's notification; `nil` to deliver none.
  /// - Returns: A token that ends the adoption when it is cancelled or released.
  public func adopt<N: CustomNotification>(
    _ name: Notification.Name?, from center: NotificationCenter = .default,
    _ make: @escaping @Sendable (Notification) throws -> N?
  ) -> LifecycleToken {
    let adopter = NotificationAdopter(core)
    observe(AdoptionFailure.self, owner: adopter) { adopter, failure in
      if failure.adopter == ObjectIdentifier(adopter) { throw failure.error }
    }
    let observer = center.addObserver(forName: name, object: nil, queue: nil) {
      [weak adopter] in adopter?.take($0, make)
    }
    // Safe: it is a token that is only handed back, which the centre allows on any thread.
    nonisolated(unsafe) let token = observer
    return LifecycleToken { [weak self] in
      center.removeObserver(token)
      self?.removeObserver(adopter)
    }
  }
}

/// The notification that a closure has thrown: in its delivery the adopter's hook fails with the error.
private struct AdoptionFailure: CustomNotification {
  let error: any Error
  /// The adopter that it is for; there may be others.
  let adopter: ObjectIdentifier
}

private final class NotificationAdopter: Sendable {
  private weak let core: LifecycleCore?

  init(_ core: LifecycleCore) { self.core = core }

  /// Takes a notification on the poster's thread, without blocking.
  func take<N: CustomNotification>(
    _ notification: Notification, _ make: (Notification) throws -> N?
  ) {
    if notification.object is any LifecycleNotification { return }
    do {
      if let made = try make(notification) { post(made, notification) }
    } catch {
      post(AdoptionFailure(error: error, adopter: ObjectIdentifier(self)), notification)
    }
  }

  private func post(_ made: some CustomNotification, _ notification: Notification) {
    core?.receive(
      LifecycleEvent(
        .post(made), cause: LifecycleCause(.other("notification \(notification.name.rawValue)"))))
  }
}
