// SPDX-License-Identifier: Apache-2.0
/// One delivery of a transition: a notification, or what only work that runs throughout receives.
enum LifecycleStep: Sendable {
  case kind(NotificationKind)
  case posted(LifecyclePost)
  /// Work that runs throughout begins: all have finished launching.
  case workBegins
  /// It ends: everything else has paused.
  case workEnds

  /// The kind of notification; `nil` for a post and for work.
  var kind: NotificationKind? { if case .kind(let kind) = self { kind } else { nil } }

  var isDownward: Bool { endsWork || kind?.row.direction == .down }

  /// Whether work begins with the step.
  var beginsWork: Bool { if case .workBegins = self { true } else { kind == .willEnterForeground } }

  /// Whether work ends with it.
  var endsWork: Bool { if case .workEnds = self { true } else { isPause } }

  /// Whether a termination skips the rest of this delivery.
  var yieldsToTermination: Bool {
    if case .workEnds = self { false } else { kind?.row.yields ?? true }
  }

  /// How the step changes the state of the observers that receive it.
  var change: NotificationKind.Change {
    switch self {
    case .kind(let kind): kind.row.change
    case .posted: .nothing
    case .workBegins: .work(begins: true)
    case .workEnds: .work(begins: false)
    }
  }

  var name: String {
    type.map { String(nameOf: $0) } ?? (beginsWork ? "the beginning of work" : "the end of work")
  }
  var isHealthCheck: Bool { kind == .checkHealth }
  var isPause: Bool { kind == .didEnterBackground }
  var isSave: Bool { kind == .shouldSaveState }

  /// The notification's type; `nil` for work, of which no observer is notified.
  var type: (any LifecycleNotification.Type)? {
    switch self {
    case .workBegins, .workEnds: nil
    default: reportedType
    }
  }

  /// The type under which a report has it: work that runs throughout begins with the launch, and ends with the daemon.
  var reportedType: any LifecycleNotification.Type {
    switch self {
    case .kind(let kind): kind.row.type
    case .posted(let post): Swift.type(of: post.notification)
    case .workBegins: DidFinishLaunching.self
    case .workEnds: WillTerminate.self
    }
  }

  func notification(_ context: LifecycleContext) -> (any LifecycleNotification)? {
    switch self {
    case .kind(let kind): kind.row.make(context)
    case .posted(let post): post.notification
    case .workBegins, .workEnds: nil
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

  deinit { ReleasePool.release(notification) }
}
