// SPDX-License-Identifier: Apache-2.0
/// One delivery of a transition: a notification, or the wait for the body of `run` to end.
enum LifecycleStep: Sendable {
  case kind(NotificationKind)
  case pressure(DidReceivePressure.Resource)
  case posted(LifecyclePost)
  /// The body of `run` was cancelled: wait until it has ended.
  case bodyEnds

  /// What the registry delivers; `nil` for a post and for `bodyEnds`.
  var kind: NotificationKind? {
    switch self {
    case .kind(let kind): kind
    case .pressure: .didReceivePressure
    case .posted, .bodyEnds: nil
    }
  }

  var isDownward: Bool { kind?.row.direction == .down }

  /// Whether a termination leaves the rest of this delivery out.
  var yieldsToTermination: Bool {
    if case .bodyEnds = self { false } else { kind?.row.yields ?? true }
  }

  /// What whoever is told of it then is.
  var change: NotificationKind.Change { kind?.row.change ?? .nothing }

  var name: String { type.map { String(nameOf: $0) } ?? "the body's end" }
  var isHealthCheck: Bool { kind == .checkHealth }
  var isPause: Bool { kind == .didEnterBackground }
  var isPost: Bool { if case .posted = self { true } else { false } }
  var isSave: Bool { kind == .shouldSaveState }

  /// The notification's type; `nil` for `bodyEnds`, which no observer receives.
  var type: (any LifecycleNotification.Type)? {
    if case .posted(let post) = self { Swift.type(of: post.notification) } else { kind?.row.type }
  }

  func notification(_ context: LifecycleContext) -> (any LifecycleNotification)? {
    switch self {
    case .kind(let kind): kind.row.make(context)
    case .pressure(let resource): DidReceivePressure(resource: resource, context: context)
    case .posted(let post): post.notification
    case .bodyEnds: nil
    }
  }
}

extension LifecycleStep {
  /// The notification, which is known to be of this type.
  func notification<N: LifecycleNotification>(_ context: LifecycleContext) -> N? {
    let notification: (any LifecycleNotification)? = notification(context)
    return notification.flatMap { Self.same($0) }
  }

  /// A dynamic cast takes longer than a short hook, and this is none: the types are the same one.
  private static func same<N: LifecycleNotification>(_ notification: any LifecycleNotification)
    -> N?
  {
    func open<M: LifecycleNotification>(_ notification: M) -> N? {
      M.self == N.self ? unsafeBitCast(notification, to: N.self) : nil
    }
    return open(notification)
  }
}

struct ObserverID: Hashable, Comparable, Sendable {
  /// Grows with each addition.
  let value: UInt64
  /// Where the core keeps it: see `ObserverTable`.
  var slot = 0
  static func < (a: ObserverID, b: ObserverID) -> Bool { a.value < b.value }
}

struct PostID: Hashable, Sendable { let value: UInt64 }

/// A notification that was posted. An object, so that a step, which goes through many hands, is one word.
final class LifecyclePost: Sendable {
  let notification: any CustomNotification
  let id: PostID

  init(_ notification: any CustomNotification, id: PostID) {
    self.notification = notification
    self.id = id
  }
}
