// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

extension FakeServiceManager {
  /// One notification message as it was received.
  public struct Message: Sendable, Hashable, CustomStringConvertible {
    /// The bytes that were received; only the beginning of a message that is longer than systemd reads.
    package let bytes: [UInt8]
    /// The number of bytes that were sent.
    package let fullSize: Int
    /// The number of descriptors that were received with it.
    package let descriptorCount: Int
    /// The sender's process ID, as reported by the kernel; 0 when it is unknown.
    public let senderPID: Int32
    /// Whether bytes or descriptors were lost.
    package let isTruncated: Bool

    package init(
      bytes: [UInt8], fullSize: Int? = nil, descriptorCount: Int = 0, senderPID: Int32 = 0,
      isTruncated: Bool = false
    ) {
      self.bytes = bytes
      self.fullSize = fullSize ?? bytes.count
      self.descriptorCount = descriptorCount
      self.senderPID = senderPID
      self.isTruncated = isTruncated
    }

    /// The lines that are not empty; invalid UTF-8 in them is repaired.
    public var lines: [String] { byteLines.map { String(decoding: $0, as: UTF8.self) } }

    /// The value of the first field of this name; `nil` if there is none.
    public subscript(name: String) -> String? {
      value(of: name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The message on one line: `READY=1 STATUS=Serving from pid 4242`.
    public var description: String { lines.joined(separator: " ") + " from pid \(senderPID)" }

    /// Whether the message has this field, with this value if one is given; true when no field is given.
    func has(_ name: String?, _ value: String?) -> Bool {
      guard let name else { return true }
      return self[name] != nil && (value == nil || self[name] == value)
    }

    // MARK: Parsing

    /// The lines, split as systemd does.
    var byteLines: [ArraySlice<UInt8>] {
      let text = bytes.last == 0 ? bytes.dropLast() : bytes[...]
      return text.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") })
    }

    func value(of name: String) -> ArraySlice<UInt8>? {
      for line in byteLines {
        guard let (field, value) = Message.split(line) else { continue }
        if field.elementsEqual(name.utf8) { return value }
      }
      return nil
    }

    /// The name and the value of a line; `nil` when it has no '='.
    static func split(_ line: ArraySlice<UInt8>) -> (
      name: ArraySlice<UInt8>, value: ArraySlice<UInt8>
    )? {
      guard let sign = line.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      return (line[..<sign], line[(sign + 1)...])
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
    public internal(set) var status = ""
    /// The number of watchdog pings.
    public internal(set) var watchdogPings = 0
    /// The number of reloads that have begun.
    public internal(set) var reloadsBegun = 0
    /// The number of reloads that have ended.
    public internal(set) var reloadsEnded = 0
    /// The number of barriers that were answered.
    public internal(set) var barriers = 0
  }
}
