// SPDX-License-Identifier: Apache-2.0
/// The requests for which no transition has been planned yet.
///
/// Requests of one kind that wait together are merged into one, which keeps its place and takes the newest cause; posts
/// are delivered one by one. The request that has waited longest is first, so the order of arrival is kept and many
/// requests of one kind can't starve another.
struct PendingRequests: Sendable {
  enum Kind: Sendable {
    /// The foreground or the background, depending on the reasons at that time.
    case state
    /// The machine's sleep, or its end.
    case sleep
    case errand(LifecycleErrand)
    case pressure
    case post(LifecyclePost)
  }

  struct Request: Sendable {
    /// The number of the request, by which it was enqueued.
    let order: UInt64
    let cause: LifecycleCause
  }

  /// A number that grows with each request.
  private var lastOrder: UInt64 = 0
  private var launch: Request?
  /// The request for a state; it exists while the requested state differs, or may differ, from the reached one.
  private var state: Request?
  private(set) var sleep: Request?
  private var errands: [LifecycleErrand: Request] = [:]
  private var pressure: Request?
  /// The posts, of which there may be any number.
  private var posts = Deque<(request: Request, post: LifecyclePost)>()

  // MARK: Enqueueing

  mutating func enqueueLaunch(_ cause: LifecycleCause) { launch = request(after: launch, cause) }

  mutating func enqueue(_ kind: Kind, _ cause: LifecycleCause) {
    switch kind {
    case .state: state = request(after: state, cause)
    case .sleep: sleep = request(after: sleep, cause)
    case .errand(let errand): errands[errand] = request(after: errands[errand], cause)
    case .pressure: pressure = request(after: pressure, cause)
    case .post(let post): posts.append((request(after: nil, cause), post))
    }
  }

  private mutating func request(after old: Request?, _ cause: LifecycleCause) -> Request {
    if old == nil { lastOrder += 1 }
    return Request(order: old?.order ?? lastOrder, cause: cause)
  }

  // MARK: Taking

  mutating func takeLaunch() -> LifecycleCause? { launch.take()?.cause }

  /// Takes the request that has waited longest.
  mutating func takeNext() -> (kind: Kind, cause: LifecycleCause)? {
    guard let (kind, request) = longestWaiting() else { return nil }
    switch kind {
    case .state: state = nil
    case .sleep: sleep = nil
    case .errand(let errand): errands[errand] = nil
    case .pressure: pressure = nil
    case .post: _ = posts.popFirst()
    }
    return (kind, request.cause)
  }

  /// Takes all posts.
  mutating func takePosts() -> [LifecyclePost] {
    var taken: [LifecyclePost] = []
    while let (_, post) = posts.popFirst() { taken.append(post) }
    return taken
  }

  private func longestWaiting() -> (kind: Kind, request: Request)? {
    var first: (kind: Kind, request: Request)?
    func consider(_ kind: Kind, _ request: Request?) {
      guard let request, request.order < first?.request.order ?? .max else { return }
      first = (kind, request)
    }
    consider(.sleep, sleep)
    // A suspend enters the background on its way, and a resume is told before the foreground.
    if sleep == nil { consider(.state, state) }
    if !errands.isEmpty {
      for (errand, request) in errands { consider(.errand(errand), request) }
    }
    consider(.pressure, pressure)
    if let (request, post) = posts.first { consider(.post(post), request) }
    return first
  }
}
