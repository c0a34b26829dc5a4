// SPDX-License-Identifier: Apache-2.0
/// One delivery of a transition: a notification, or the wait for the body of `run` to end.
enum LifecycleStep: Sendable {
  case kind(NotificationKind)
  case posted(LifecyclePost)
  /// The wait for the body of `run`, which was cancelled, to end.
  case bodyEnds

  /// The kind of notification; `nil` for a post and for `bodyEnds`.
  var kind: NotificationKind? { if case .kind(let kind) = self { kind } else { nil } }

  var isDownward: Bool { kind?.row.direction == .down }

  /// Whether a termination skips the rest of this delivery.
  var yieldsToTermination: Bool {
    if case .bodyEnds = self { false } else { kind?.row.yields ?? true }
  }

  /// How the step changes the state of the observers that receive it.
  var change: NotificationKind.Change { kind?.row.change ?? .nothing }

  var name: String { type.map { String(nameOf: $0) } ?? "the body's end" }
  var isHealthCheck: Bool { kind == .checkHealth }
  var isPause: Bool { kind == .didEnterBackground }
  var isSave: Bool { kind == .shouldSaveState }

  /// The notification's type; `nil` for `bodyEnds`, which no observer receives.
  var type: (any LifecycleNotification.Type)? {
    if case .posted(let post) = self { Swift.type(of: post.notification) } else { kind?.row.type }
  }

  func notification(_ context: LifecycleContext) -> (any LifecycleNotification)? {
    switch self {
    case .kind(let kind): kind.row.make(context)
    case .posted(let post): post.notification
    case .bodyEnds: nil
    }
  }

  /// The notification, which is known to be of this type. Not by a dynamic cast, which would take longer than a short hook.
  func notification<N: LifecycleNotification>(_ context: LifecycleContext) -> N? {
    func same<M: LifecycleNotification>(_ notification: M) -> N? {
      M.self == N.self ? unsafeBitCast(notification, to: N.self) : nil
    }
    let notification: (any LifecycleNotification)? = notification(context)
    return notification.flatMap { same($0) }
  }
}

struct ObserverID: Hashable, Comparable, Sendable {
  /// A number that grows with each addition.
  let value: UInt64
  /// Its index in the machine's table.
  var slot = 0
  static func < (a: ObserverID, b: ObserverID) -> Bool { a.value < b.value }
}

/// A notification that was posted. It is an object so that a step, which is copied often, has the size of one word. The
/// shell's subclass has the poster.
///
/// `@unchecked`, since a class with subclasses can't be checked: all properties are constants of sendable types.
class LifecyclePost: @unchecked Sendable {
  let notification: any CustomNotification

  init(_ notification: any CustomNotification) { self.notification = notification }
}
