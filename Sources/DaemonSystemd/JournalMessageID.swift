// SPDX-License-Identifier: Apache-2.0
/// The 128-bit identifier of a kind of message, by which operators find every entry of that kind.
///
/// ```swift
/// let diskFull = try MessageID("5c3c1d2f8a0e4b6f9d7e6a5b4c3d2e1f")
/// // journalctl MESSAGE_ID=5c3c1d2f8a0e4b6f9d7e6a5b4c3d2e1f
/// ```
///
/// Create one for each kind of message with `systemd-id128 new`, and never change it. Source:
/// systemd.journal-fields(7).
public struct MessageID: Sendable, Hashable, CustomStringConvertible {
  /// The identifier: 32 lower-case hexadecimal digits.
  public let description: String

  /// Makes an identifier from its text; upper case becomes lower case.
  ///
  /// - Parameter text: 32 hexadecimal digits.
  /// - Throws: ``SystemdError/invalidArgument(_:)`` for anything else.
  public init(_ text: String) throws(SystemdError) {
    guard text.utf8.allSatisfy(\.isHexDigit), text.utf8.count == 32 else {
      throw .invalidArgument(
        "The message ID \"\(text)\" is not 32 hexadecimal digits without dashes; "
          + "systemd-id128 new prints one.")
    }
    description = text.lowercased()
  }

  /// Makes an identifier that is a literal in this package.
  package init(known text: StaticString) { description = text.description }
}
