// SPDX-License-Identifier: Apache-2.0
extension FakeServiceManager {
  /// One notification message as it was received.
  public struct Message: Sendable, Hashable, CustomStringConvertible {
    /// The bytes that were received.
    package let bytes: [UInt8]
    /// The number of descriptors that were received with it.
    package let descriptorCount: Int
    /// The sender's process ID, as reported by the kernel; 0 when it is unknown.
    package let senderPID: Int32

    /// The lines that are not empty; invalid UTF-8 in them is repaired, and a backslash is an escape, as for systemd.
    package var lines: [String] {
      bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.map { line in
        var escapes = false
        let value = line.filter {
          escapes = $0 == UInt8(ascii: "\\") && !escapes
          return !escapes
        }
        return String(decoding: value, as: UTF8.self)
      }
    }

    /// The value of the first field of this name; `nil` if there is none.
    public subscript(name: String) -> String? {
      // By bytes: a combining mark joins with the '='.
      lines.first { $0.utf8.starts(with: "\(name)=".utf8) }
        .map { String(decoding: $0.utf8.dropFirst(name.utf8.count + 1), as: UTF8.self) }
    }

    /// The message on one line: `READY=1 STATUS=Serving from pid 4242`.
    public var description: String { lines.joined(separator: " ") + " from pid \(senderPID)" }

    /// Whether the message has this field, with its value if one is given; true when no field is given.
    func has(_ field: String?) -> Bool {
      guard let field else { return true }
      return field.utf8.contains(UInt8(ascii: "=")) ? lines.contains(field) : self[field] != nil
    }
  }

  /// The state of a service according to its messages.
  public struct ServiceState: Sendable, Hashable {
    /// Whether `READY=1` was received.
    public internal(set) var isReady = false
    /// Whether `RELOADING=1` was received, and no `READY=1` after it.
    public internal(set) var isReloading = false
    /// Whether `STOPPING=1` was received.
    public internal(set) var isStopping = false
    /// The last `STATUS=`; empty when none was received or it was cleared.
    public internal(set) var statusText = ""
    /// The number of watchdog pings.
    public internal(set) var watchdogPings = 0
    /// The number of reloads that have begun.
    public internal(set) var reloadsBegun = 0
    /// The number of reloads that have ended.
    public internal(set) var reloadsEnded = 0
    /// The number of barriers that were answered.
    package internal(set) var barriers = 0
  }
}
