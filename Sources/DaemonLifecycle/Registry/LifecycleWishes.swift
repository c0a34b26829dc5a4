/// What is wanted, and for which no walk has been planned yet.
///
/// Wishes of one kind that wait together are one, which keeps its place and takes the newest cause; posts are
/// told one by one. Whoever has waited longest is first, so the order of arrival is kept and a storm of one kind can't
/// starve another.
struct LifecycleWishes: Sendable {
  enum Kind: Sendable {
    /// The foreground or the background, as the reasons have it then.
    case state
    /// To be told of the machine's sleep, or of its end.
    case sleep
    case reload, save
    case pressure(DidReceivePressure.Resource)
    case post(LifecyclePost)
  }

  struct Wish: Sendable {
    /// Since when it waits.
    let order: UInt64
    let cause: LifecycleCause
  }

  /// Grows with each wish.
  private var lastOrder: UInt64 = 0
  private var launch: Wish?
  /// Exists while the state wanted differs from the state reached, or may.
  private var state: Wish?
  private(set) var sleep: Wish?
  private var reload: Wish?
  private var save: Wish?
  private var pressure: [DidReceivePressure.Resource: Wish] = [:]
  /// Any number of them.
  private var posts = Deque<(wish: Wish, post: LifecyclePost)>()

  // MARK: Wishing

  mutating func wantLaunch(_ cause: LifecycleCause) { launch = wish(after: launch, cause) }

  mutating func want(_ kind: Kind, _ cause: LifecycleCause) {
    switch kind {
    case .state: state = wish(after: state, cause)
    case .sleep: sleep = wish(after: sleep, cause)
    case .reload: reload = wish(after: reload, cause)
    case .save: save = wish(after: save, cause)
    case .pressure(let resource): pressure[resource] = wish(after: pressure[resource], cause)
    case .post(let post): posts.append((wish(after: nil, cause), post))
    }
  }

  private mutating func wish(after old: Wish?, _ cause: LifecycleCause) -> Wish {
    if old == nil { lastOrder += 1 }
    return Wish(order: old?.order ?? lastOrder, cause: cause)
  }

  // MARK: Taking

  mutating func takeLaunch() -> LifecycleCause? { launch.take()?.cause }

  /// The one that has waited longest.
  mutating func takeNext() -> (kind: Kind, cause: LifecycleCause)? {
    guard let (kind, wish) = longestWaiting() else { return nil }
    switch kind {
    case .state: state = nil
    case .sleep: sleep = nil
    case .reload: reload = nil
    case .save: save = nil
    case .pressure(let resource): pressure[resource] = nil
    case .post: _ = posts.popFirst()
    }
    return (kind, wish.cause)
  }

  /// All that were posted.
  mutating func takePosts() -> [LifecyclePost] {
    var taken: [LifecyclePost] = []
    while let (_, post) = posts.popFirst() { taken.append(post) }
    return taken
  }

  private func longestWaiting() -> (kind: Kind, wish: Wish)? {
    var first: (kind: Kind, wish: Wish)?
    func consider(_ kind: Kind, _ wish: Wish?) {
      guard let wish, wish.order < first?.wish.order ?? .max else { return }
      first = (kind, wish)
    }
    consider(.sleep, sleep)
    // A suspend enters the background on its way, and a resume is told before the foreground.
    if sleep == nil { consider(.state, state) }
    consider(.reload, reload)
    consider(.save, save)
    for (resource, wish) in pressure { consider(.pressure(resource), wish) }
    if let (wish, post) = posts.first { consider(.post(post), wish) }
    return first
  }
}
