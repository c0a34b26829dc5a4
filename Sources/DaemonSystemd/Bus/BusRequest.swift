// SPDX-License-Identifier: Apache-2.0
/// A query to a service, or a state that is followed there: what is sent, and what is done with replies and signals.
///
/// The query is sent on each connection, and to each new process of the service. The closures are called by
/// `BusConnection.process()` on its thread, and must not use the connection.
package struct BusRequest {
  package typealias Reply = Result<[BusValue], BusError>

  /// The consequence of a reply or a signal.
  package enum Next {
    case done
    /// After a reply the query is sent again after a delay; after a signal at once.
    case again
    /// Another call completes the answer.
    case call(BusCall)
    /// It is not of its type, which is reported to `failure`.
    case malformed
  }

  let service: BusService
  let matches: [BusMatch]
  let isOnDemand: Bool
  let query: () -> BusCall
  let reply: (Reply, BusCall) -> Next
  let signal: (_ member: String, [BusValue]) -> Next
  let failure: (BusError) -> Void

  /// - Parameters:
  ///   - matches: The signals that are received, from the service's owner alone: the bus delivers a signal that any
  ///     program sends straight to this one.
  ///   - isOnDemand: Whether the query is sent only by `BusConnection.sendOnDemand()`, and once.
  ///   - query: Makes the call; it is called before each attempt.
  ///   - reply: Receives the values that a call was answered with, or the error.
  ///   - signal: Receives the values of a signal.
  ///   - failure: Receives what concerns no single call: there is no bus, or none any more (reported once until there
  ///     is one), signals are refused, or a message is malformed.
  package init(
    _ service: BusService, matches: [BusMatch] = [], isOnDemand: Bool = false,
    query: @escaping () -> BusCall, reply: @escaping (Reply, BusCall) -> Next,
    signal: @escaping (String, [BusValue]) -> Next = { _, _ in .done },
    failure: @escaping (BusError) -> Void
  ) {
    (self.service, self.matches, self.isOnDemand) = (service, matches, isOnDemand)
    (self.query, self.reply, self.signal, self.failure) = (query, reply, signal, failure)
  }
}
