// SPDX-License-Identifier: Apache-2.0
/// The requests for which no transition has been planned yet.
///
/// Requests of one kind that wait together are merged into one, which keeps its place and takes the newest cause; posts
/// are delivered one by one. The request that has waited longest is first, so the order of arrival is kept and many
/// requests of one kind can't starve another.
struct PendingRequests: Sendable {
  struct Waiting: Sendable {
    let request: LifecycleRequest
    let cause: LifecycleCause
    /// The number of posts that were enqueued by then, itself included.
    let order: UInt64
    /// What is posted, where the request is a post.
    var post: LifecyclePost?
  }

  /// The number of posts that were enqueued: all that the order of a request and a post depends on.
  private var posted: UInt64 = 0
  /// The launch, which is requested alone.
  var launch: LifecycleCause?
  /// One of each kind, sorted by order. A request for a state exists while the requested state differs, or may differ,
  /// from the reached one.
  private var merged: [Waiting] = []
  /// The posts, of which there may be any number.
  private var posts = Deque<Waiting>()

  /// Whether a request about the machine's sleep waits.
  var concernSleep: Bool { merged.contains { $0.request.concernsSleep } }

  var containResume: Bool {
    merged.contains { if case .resume = $0.request { true } else { false } }
  }

  // MARK: Enqueueing

  mutating func enqueue(_ request: LifecycleRequest, _ cause: LifecycleCause) {
    if let index = merged.firstIndex(where: { $0.request.merges(with: request) }) {
      merged[index] = Waiting(request: request, cause: cause, order: merged[index].order)
    } else {
      merged.append(Waiting(request: request, cause: cause, order: posted))
    }
  }

  mutating func enqueue(_ post: LifecyclePost, _ cause: LifecycleCause) {
    posted += 1
    posts.append(
      Waiting(request: .post(post.notification), cause: cause, order: posted, post: post))
  }

  // MARK: Taking

  /// Takes the request that has waited longest.
  mutating func takeNext() -> Waiting? {
    // A sleep enters the background on its way, and an observer receives DidWakeUp before WillEnterForeground.
    let sleepIsFirst = concernSleep
    let index = merged.firstIndex { !sleepIsFirst || !$0.request.concernsState }
    // What it takes in is older than a post, where only that is.
    if let index, merged[0].order < posts.first?.order ?? .max {
      return merged.remove(at: index)
    }
    return posts.popFirst()
  }

  mutating func take(_ post: LifecyclePost) -> LifecycleCause? {
    posts.removeFirst { $0.post === post }?.cause
  }

  mutating func takePosts() -> [LifecyclePost] {
    var taken: [LifecyclePost] = []
    while let post = posts.popFirst()?.post { taken.append(post) }
    return taken
  }
}
