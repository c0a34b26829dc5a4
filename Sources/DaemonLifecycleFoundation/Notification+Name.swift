// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

extension Notification.Name {
  /// The name under which a bridge posts the notifications of one type: `DaemonDidEnterBackgroundNotification` for
  /// `DidEnterBackground`.
  ///
  /// ```swift
  /// let token = NotificationCenter.default.addObserver(
  ///   forName: .daemon(DidReceivePressure.self), object: nil, queue: nil
  /// ) { notification in
  ///   let pressure = notification.object as? DidReceivePressure
  ///   …
  /// }
  /// ```
  public static func daemon<N: LifecycleNotification>(_ type: N.Type) -> Notification.Name {
    Notification.Name("Daemon\(type)Notification")
  }
}
