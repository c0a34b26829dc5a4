// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

/// A notification of the lifecycle that is made of one in a `NotificationCenter`.
///
///     struct CacheInvalidated: AdoptedNotification {
///       static let source = NotificationSource<String>.userInfo("region", of: Notification.Name("CacheInvalidated"))
///       let region: Region
///       init(adopting name: String) throws { region = try Region(name) }
///     }
///
///     let adoption = lifecycle.adopt(CacheInvalidated.self)
///     let token = lifecycle.observe(CacheInvalidated.self) { cache.drop($0.region) }
///
/// What is adopted can't be bridged: the compiler refuses a type that is a ``BridgedNotification`` too.
public protocol AdoptedNotification: _DirectedNotification, CustomNotification
where _Direction == _Inward {
  /// What the notification carries, as it leaves the poster's thread.
  associatedtype Payload: Sendable

  /// Which notifications are adopted, and where in them the payload is.
  static var source: NotificationSource<Payload> { get }

  /// Makes the lifecycle's notification of the payload. Called in a hook, on a thread of the subject's own, within
  /// the hook's deadline.
  ///
  /// - Throws: What is wrong with the payload: it is in the report, and nothing is delivered.
  init(adopting payload: Payload) throws
}

extension LifecycleObservable {
  /// Delivers what is posted to a `NotificationCenter` as a notification of the lifecycle, as long as the token lives.
  ///
  ///     let adoption = lifecycle.adopt(CacheInvalidated.self)
  ///
  /// The poster is not kept: on its thread, and perhaps under a lock of its, the payload is taken out, with no code
  /// of yours, and a `NotificationArrival` is put behind what waits to be delivered. In its turn a hook of the
  /// adoption decodes the payload, and posts the notification behind what waits by then. So they keep the order in
  /// which they were posted.
  ///
  /// A payload that is missing, of another type, or that `init(adopting:)` throws for, is a failed hook in the
  /// arrival's report, and in the log:
  ///
  /// ```text
  /// NotificationAdopter, NotificationArrival<CacheInvalidated>: failed after 0.3 ms: CacheInvalidated can't be …
  /// ```
  ///
  /// Once the termination has begun, nothing is delivered any more, as with `post`. May be called from any thread.
  public func adopt<N: AdoptedNotification>(
    _ type: N.Type, from center: NotificationCenter = .default
  ) -> ObservationToken {
    let adopter = NotificationAdopter(core)
    observe(NotificationArrival<N>.self, owner: adopter) { adopter, arrival in
      try adopter.decode(arrival)
    }
    let source = N.source
    let stop = source.observe(center) { [weak adopter] payload in
      adopter?.take(N.self, payload, from: source.name)
    }
    return ObservationToken { [weak self] in
      stop()
      self?.removeObserver(adopter)
    }
  }
}

/// Something to adopt has been posted: the delivery in which it is decoded.
struct NotificationArrival<Adopted: AdoptedNotification>: CustomNotification {
  /// What the notification carries, or why that can't be adopted.
  let payload: Result<Adopted.Payload, NotificationAdoptionError>
  /// Who adopts it: another one may, of another centre.
  let adopter: ObjectIdentifier
  let name: String
}

final class NotificationAdopter: Sendable {
  private weak let core: LifecycleCore?

  init(_ core: LifecycleCore) { self.core = core }

  /// On the poster's thread: does not wait, and runs nothing of the user's.
  func take<N: AdoptedNotification>(
    _: N.Type, _ payload: Result<N.Payload, NotificationAdoptionError>, from name: String
  ) {
    let arrival = NotificationArrival<N>(
      payload: payload, adopter: ObjectIdentifier(self), name: name)
    post(arrival, from: name)
  }

  /// In a hook.
  func decode<N: AdoptedNotification>(_ arrival: NotificationArrival<N>) throws {
    guard arrival.adopter == ObjectIdentifier(self) else { return }
    post(try N(adopting: arrival.payload.get()), from: arrival.name)
  }

  private func post(_ notification: some CustomNotification, from name: String) {
    core?.send(
      LifecycleEvent(.post(notification), cause: LifecycleCause(.other("notification \(name)"))))
  }
}
