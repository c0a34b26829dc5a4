// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

/// A notification of the lifecycle that is made from one of a `NotificationCenter`.
///
/// ```swift
/// struct CacheInvalidated: AdoptedNotification {
///   static let source = NotificationSource<String>.userInfo("region", of: Notification.Name("CacheInvalidated"))
///   let region: Region
///   init(adopting name: String) throws { region = try Region(name) }
/// }
///
/// let adoption = lifecycle.adopt(CacheInvalidated.self)
/// let token = lifecycle.observe(CacheInvalidated.self) { cache.drop($0.region) }
/// ```
///
/// An adopted notification can't be bridged: a type that is a ``BridgedNotification`` too does not compile.
public protocol AdoptedNotification: _DirectedNotification, CustomNotification
where _Direction == _Inward {
  /// The content of the notification, as it leaves the poster's thread.
  associatedtype Payload: Sendable

  /// The notifications to adopt, and the place of the payload in them.
  static var source: NotificationSource<Payload> { get }

  /// Makes the lifecycle's notification from the payload. It is called in a hook, on a thread of the subject, within
  /// the hook's deadline.
  ///
  /// - Throws: An error about the payload. It is in the report, and nothing is delivered.
  init(adopting payload: Payload) throws
}

extension LifecycleObservable {
  /// Delivers what is posted to a `NotificationCenter` as a notification of the lifecycle, until the returned token is
  /// released or cancelled.
  ///
  /// ```swift
  /// let adoption = lifecycle.adopt(CacheInvalidated.self)
  /// ```
  ///
  /// The poster is not blocked. On its thread, perhaps with its locks held, only the payload is extracted, without
  /// running custom code, and a `NotificationArrival` is queued. When that is delivered, a hook of the adoption decodes
  /// the payload and posts the notification. So notifications keep the order in which they were posted.
  ///
  /// A payload that is missing or of another type, or for which `init(adopting:)` throws, is a failed hook in the
  /// arrival's report and in the log:
  ///
  /// ```text
  /// NotificationAdopter, NotificationArrival<CacheInvalidated>: failed after 0.3 ms: CacheInvalidated can't be …
  /// ```
  ///
  /// Once the termination has begun, nothing more is delivered, as with `post`. May be called from any thread.
  ///
  /// - Parameters:
  ///   - type: The type of notification to deliver.
  ///   - center: The centre to observe. Default: the default centre.
  /// - Returns: A token that ends the adoption when it is cancelled or released.
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

/// The arrival of a notification to adopt: in its delivery the payload is decoded.
struct NotificationArrival<Adopted: AdoptedNotification>: CustomNotification {
  /// The payload, or the reason why it can't be adopted.
  let payload: Result<Adopted.Payload, NotificationAdoptionError>
  /// The adopter that it is for; there may be others, of other centres.
  let adopter: ObjectIdentifier
  let name: String
}

final class NotificationAdopter: Sendable {
  private weak let core: LifecycleCore?

  init(_ core: LifecycleCore) { self.core = core }

  /// Takes a payload on the poster's thread, without blocking and without running user code.
  func take<N: AdoptedNotification>(
    _: N.Type, _ payload: Result<N.Payload, NotificationAdoptionError>, from name: String
  ) {
    let arrival = NotificationArrival<N>(
      payload: payload, adopter: ObjectIdentifier(self), name: name)
    post(arrival, from: name)
  }

  /// Decodes the payload, in a hook.
  func decode<N: AdoptedNotification>(_ arrival: NotificationArrival<N>) throws {
    guard arrival.adopter == ObjectIdentifier(self) else { return }
    post(try N(adopting: arrival.payload.get()), from: arrival.name)
  }

  private func post(_ notification: some CustomNotification, from name: String) {
    core?.send(
      LifecycleEvent(.post(notification), cause: LifecycleCause(.other("notification \(name)"))))
  }
}
