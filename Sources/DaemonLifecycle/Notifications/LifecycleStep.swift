/// One delivery of a transition: a notification, or the wait for the body of `run` to end.
enum LifecycleStep: Sendable {
  case didFinishLaunching
  case willEnterForeground
  case didEnterBackground
  case shouldSaveState
  case shouldReload
  case willSuspend
  case didResume
  case pressure(DidReceivePressure.Resource)
  case posted(LifecyclePost)
  case checkHealth
  /// The body of `run` was cancelled: wait until it has ended.
  case bodyEnds
  case willTerminate

  /// Whether observers receive in reverse.
  var isDownward: Bool {
    switch self {
    case .didEnterBackground, .shouldSaveState, .willSuspend, .willTerminate: true
    default: false
    }
  }

  /// Whether a termination leaves the rest of this delivery out. What takes things down goes on.
  var yieldsToTermination: Bool {
    switch self {
    case .didEnterBackground, .shouldSaveState, .bodyEnds, .willTerminate: false
    default: true
    }
  }

  var isHealthCheck: Bool { if case .checkHealth = self { true } else { false } }
  var isPause: Bool { if case .didEnterBackground = self { true } else { false } }
  var isPost: Bool { if case .posted = self { true } else { false } }
  var isSave: Bool { if case .shouldSaveState = self { true } else { false } }

  /// The notification's type; `nil` for `bodyEnds`, which no observer receives.
  var type: (any LifecycleNotification.Type)? {
    switch self {
    case .didFinishLaunching: DidFinishLaunching.self
    case .willEnterForeground: WillEnterForeground.self
    case .didEnterBackground: DidEnterBackground.self
    case .shouldSaveState: ShouldSaveState.self
    case .shouldReload: ShouldReload.self
    case .willSuspend: WillSuspend.self
    case .didResume: DidResume.self
    case .pressure: DidReceivePressure.self
    case .posted(let post): Swift.type(of: post.notification)
    case .checkHealth: CheckHealth.self
    case .bodyEnds: nil
    case .willTerminate: WillTerminate.self
    }
  }

  func notification(_ context: LifecycleContext) -> (any LifecycleNotification)? {
    switch self {
    case .didFinishLaunching: DidFinishLaunching(context: context)
    case .willEnterForeground: WillEnterForeground(context: context)
    case .didEnterBackground: DidEnterBackground(context: context)
    case .shouldSaveState: ShouldSaveState(context: context)
    case .shouldReload: ShouldReload(context: context)
    case .willSuspend: WillSuspend(context: context)
    case .didResume: DidResume(context: context)
    case .pressure(let resource): DidReceivePressure(resource: resource, context: context)
    case .posted(let post): post.notification
    case .checkHealth: CheckHealth(context: context)
    case .bodyEnds: nil
    case .willTerminate: WillTerminate(context: context)
    }
  }
}

extension LifecycleStep {
  /// The notification, if it was posted; it is known to be of this type.
  func posted<N: LifecycleNotification>() -> N? {
    guard case .posted(let post) = self else { return nil }
    return Self.same(post.notification)
  }

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
  let notification: any LifecycleNotification
  /// What its poster is found by.
  let id: PostID

  init(_ notification: any LifecycleNotification, id: PostID) {
    self.notification = notification
    self.id = id
  }
}
