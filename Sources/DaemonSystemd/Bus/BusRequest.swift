// SPDX-License-Identifier: Apache-2.0
/// A query to a service, or a subscription to its state: the call to send, and the handling of replies and signals.
///
/// The query is sent on each connection, and to each new process of the service. The closures are called by
/// `BusConnection.process()` on its thread, and must not use the connection.
package struct BusRequest {
  package enum Event {
    /// The values of the reply to a call.
    case reply([BusValue], to: BusCall)
    /// A call has failed. Or, without a call: there is no bus, or none any more (reported once until there is one),
    /// signals are refused, or a message is malformed.
    case failure(BusError, of: BusCall?)
    /// The values of a signal.
    case signal([BusValue])
  }

  /// What follows from an event; ignored for a failure without a call.
  package enum Next {
    case done
    /// After a reply or a failed call the query is sent again after a delay; after a signal at once.
    case again
    /// Another call completes the answer.
    case call(BusCall)
    /// Other signals are requested, too, and the query is sent again at once: the state may have changed before.
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
  ///   - matches: The signals to receive. Only those of the service's owner count: the bus also delivers a signal that
  ///     any program sends directly to this one.
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
