// SPDX-License-Identifier: Apache-2.0
/// A query to a service, or a state that is followed there: what is sent, and what is done with replies and signals.
///
/// The query is sent on each connection, and to each new process of the service. The closures are called by
/// `BusConnection.process()` on its thread, and must not use the connection.
package struct BusRequest {
  package enum Event {
    /// The values that a call was answered with.
    case reply([BusValue], to: BusCall)
    /// A call has failed. Or, without a call: there is no bus, or none any more (reported once until there is one),
    /// signals are refused, or a message is malformed.
    case failure(BusError, of: BusCall?)
    /// The values of a signal.
    case signal([BusValue])
  }

  /// The consequence of an event; of a failure without a call there is none.
  package enum Next {
    case done
    /// After a reply the query is sent again after a delay; after a signal at once.
    case again
    /// Another call completes the answer.
    case call(BusCall)
    /// Other signals are requested, too, and the query is sent again at once: what they tell of may have changed before.
    case follow(BusMatch)
    /// It has an unexpected type, which is reported as a failure.
    case malformed
  }

  let service: BusService
  let matches: [BusMatch]
  let isOnDemand: Bool
  let query: () -> BusCall
  let receive: (Event) -> Next

  /// - Parameters:
  ///   - matches: The signals that are received, from the service's owner alone: the bus delivers a signal that any
  ///     program sends straight to this one.
  ///   - isOnDemand: Whether the query is sent only by `BusConnection.sendOnDemand()`, once each time.
  ///   - query: The call; evaluated before each attempt.
  package init(
    _ service: BusService, matches: [BusMatch] = [], isOnDemand: Bool = false,
    query: @autoclosure @escaping () -> BusCall, receive: @escaping (Event) -> Next
  ) {
    (self.service, self.matches, self.isOnDemand) = (service, matches, isOnDemand)
    (self.query, self.receive) = (query, receive)
  }
}
