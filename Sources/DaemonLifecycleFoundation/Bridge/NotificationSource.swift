// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// A description of the notifications to adopt from a `NotificationCenter`, and of the place of the payload in them.
///
/// ```swift
/// NotificationSource<Int>.object(of: Notification.Name("LimitChanged"))
/// NotificationSource<String>.userInfo("region", of: Notification.Name("CacheInvalidated"))
/// NotificationSource.userInfo(("path", URL.self), ("size", Int.self), of: Notification.Name("FileGrew"))
/// NotificationSource<Void>.name(Notification.Name("ClockChanged"))
/// NotificationSource<LimitMessage>.message
/// ```
///
/// It has no custom closure, so no custom code runs on the poster's thread, which may hold locks. Values that are not
/// `Sendable` stay on that thread.
public struct NotificationSource<Payload: Sendable>: Sendable {
  typealias Handler = @Sendable (Result<Payload, NotificationAdoptionError>) -> Void

  /// The notification's name, or the message's type.
  let name: String
  /// Begins to observe; the closure that it returns ends that.
  let observe: @Sendable (NotificationCenter, @escaping Handler) -> @Sendable () -> Void

  // MARK: By name

  /// A source of notifications whose `object` is the payload.
  public static func object(of name: Notification.Name) -> Self {
    Self(name) { notification throws(NotificationAdoptionError) in
      try value(notification.object, "object", name)
    }
  }

  /// A source of notifications whose `userInfo` has the payload under a key.
  ///
  /// - Parameters:
  ///   - key: The key of the payload.
  ///   - name: The notifications' name.
  public static func userInfo(_ key: String, of name: Notification.Name) -> Self {
    Self(name) { notification throws(NotificationAdoptionError) in
      try value(notification.userInfo?[key], "userInfo[\"\(key)\"]", name)
    }
  }

  /// A source of notifications whose `userInfo` has values under several keys: the payload is a tuple of them.
  ///
  /// - Parameters:
  ///   - key: The keys and the types of their values.
  ///   - name: The notifications' name.
  public static func userInfo<each Value: Sendable>(
    _ key: repeat (String, (each Value).Type), of name: Notification.Name
  ) -> Self where Payload == (repeat each Value) {
    Self(name) { notification throws(NotificationAdoptionError) in
      let userInfo = notification.userInfo
      return
        (repeat try value(
          userInfo?[(each key).0], "userInfo[\"\((each key).0)\"]", name, as: (each Value).self))
    }
  }

  /// A source of notifications without a payload.
  public static func name(_ name: Notification.Name) -> Self where Payload == Void {
    Self(name) { _ throws(NotificationAdoptionError) in }
  }

  private init(
    _ name: Notification.Name,
    payload: @escaping @Sendable (Notification) throws(NotificationAdoptionError) -> Payload
  ) {
    self.name = name.rawValue
    observe = { center, handle in
      let observer = center.addObserver(forName: name, object: nil, queue: nil) { notification in
        handle(
          Result { () throws(NotificationAdoptionError) in
            try refuseOutward(notification.object, name.rawValue)
            return try payload(notification)
          })
      }
      // Safe: it is a token that is only handed back, which the centre allows on any thread.
      nonisolated(unsafe) let token = observer
      return { center.removeObserver(token) }
    }
  }

  fileprivate init(
    messagesOf type: any Any.Type,
    observe: @escaping @Sendable (NotificationCenter, @escaping Handler) -> @Sendable () -> Void
  ) {
    name = "\(type)"
    self.observe = observe
  }
}

// MARK: Typed

extension NotificationSource where Payload: NotificationCenter.AsyncMessage {
  /// A source of typed messages, which are the payload. Foundation delivers them on Swift's cooperative pool, in no
  /// particular order.
  public static var message: Self {
    Self(messagesOf: Payload.self) { center, handle in
      let token = center.addObserver(
        of: Payload.Subject.self, for: NotificationCenter.BaseMessageIdentifier<Payload>()
      ) { handle(checked($0)) }
      return { center.removeObserver(token) }
    }
  }
}

extension NotificationSource where Payload: NotificationCenter.MainActorMessage {
  /// A source of typed messages of the main actor, which are the payload. They are taken when the main actor posts
  /// them, in order.
  public static var message: Self {
    Self(messagesOf: Payload.self) { center, handle in
      let token = center.addObserver(
        of: Payload.Subject.self, for: NotificationCenter.BaseMessageIdentifier<Payload>()
      ) { handle(checked($0)) }
      return { center.removeObserver(token) }
    }
  }
}

// MARK: Checks

private func value<Value: Sendable>(
  _ found: Any?, _ place: String, _ name: Notification.Name, as _: Value.Type = Value.self
) throws(NotificationAdoptionError) -> Value {
  guard let found else {
    throw .missing(name.rawValue, place: place, expected: "\(Value.self)")
  }
  try refuseOutward(found, name.rawValue)
  guard let value = found as? Value else {
    throw .wrongType(
      name.rawValue, place: place, expected: "\(Value.self)", found: "\(type(of: found))")
  }
  return value
}

private func checked<Payload>(_ message: Payload) -> Result<Payload, NotificationAdoptionError> {
  Result { () throws(NotificationAdoptionError) in
    try refuseOutward(message, "\(Payload.self)")
    return message
  }
}

/// Refuses a value that a lifecycle has posted. It is recognized by the value, not by the name or by what is being
/// delivered.
private func refuseOutward(_ value: Any?, _ name: String) throws(NotificationAdoptionError) {
  guard let directed = value as? any _DirectedNotification else { return }
  throw .crossesAgain(name, type: "\(type(of: directed))")
}
