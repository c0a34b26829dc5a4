// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A query that a follower can send over the bus again; it does nothing before `begin`.
final class BusQuestion: Sendable {
  /// Weak: the session holds what asks.
  private struct Place {
    weak var session: BusSession?
    let item: BusSession.Item
  }
  private let place = Mutex<Place?>(nil)

  func begin(_ item: BusSession.Item, on session: BusSession) {
    place.withLock { $0 = Place(session: session, item: item) }
  }

  func ask() {
    guard let place = place.withLock({ $0 }) else { return }
    place.session?.ask(place.item)
  }
}
