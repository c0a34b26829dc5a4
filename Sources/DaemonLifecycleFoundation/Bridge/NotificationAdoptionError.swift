// SPDX-License-Identifier: Apache-2.0
/// Why a notification can't be adopted: it came with no payload, with another one, or from a lifecycle.
///
/// In the report of its `NotificationArrival`. What `init(adopting:)` throws is there as it is.
public enum NotificationAdoptionError: Error, Sendable, Hashable, CustomStringConvertible {
  /// There is nothing at the place where the payload should be.
  case missing(_ name: String, place: String, expected: String)
  /// There is something else.
  case wrongType(_ name: String, place: String, expected: String, found: String)
  /// It carries what has crossed between a lifecycle and a centre already, which must not cross again.
  case crossesAgain(_ name: String, type: String)

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
