// SPDX-License-Identifier: Apache-2.0
/// The reason why a notification can't be adopted: it has no payload, one of another type, or one from a lifecycle.
///
/// The error is in the report of the `NotificationArrival`. Errors that `init(adopting:)` throws are there unchanged.
public enum NotificationAdoptionError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The notification has no value at the payload's place.
  case missing(_ name: String, place: String, expected: String)
  /// The value at the payload's place has another type.
  case wrongType(_ name: String, place: String, expected: String, found: String)
  /// The payload has already crossed between a lifecycle and a centre, and must not cross again.
  case crossesAgain(_ name: String, type: String)

  /// The error in one sentence, for a log.
  public var description: String {
    switch self {
    case .missing(let name, let place, let expected):
      "\(name) can't be adopted: its \(place) is missing, which should be of type \(expected)."
    case .wrongType(let name, let place, let expected, let found):
      "\(name) can't be adopted: its \(place) is of type \(found) and not \(expected)."
    case .crossesAgain(let name, let type):
      "\(name) can't be adopted: it carries a \(type), which was bridged or adopted before and must not cross again."
    }
  }
}
