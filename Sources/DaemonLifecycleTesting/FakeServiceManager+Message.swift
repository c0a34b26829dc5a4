// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

extension FakeServiceManager {
  /// One notification as it came.
  public struct Message: Sendable, Hashable, CustomStringConvertible {
    /// Exactly what was sent; its beginning, if it was longer than ``fullSize`` says that it should be.
    public let bytes: [UInt8]
    /// How many bytes were sent.
    public let fullSize: Int
    /// How many descriptors came with it.
    public let descriptorCount: Int
    /// Who sent it, by the kernel's word; 0 when that is unknown.
    public let senderPID: Int32
    /// The sender's user, by the kernel's word.
    public let senderUID: UInt32
    /// Whether bytes or descriptors were lost on the way.
    public let isTruncated: Bool

    package init(
      bytes: [UInt8], fullSize: Int? = nil, descriptorCount: Int = 0, senderPID: Int32 = 0,
      senderUID: UInt32 = 0, isTruncated: Bool = false
    ) {
      self.bytes = bytes
      self.fullSize = fullSize ?? bytes.count
      self.descriptorCount = descriptorCount
      self.senderPID = senderPID
      self.senderUID = senderUID
      self.isTruncated = isTruncated
    }

    /// The lines that are not empty; what is not UTF-8 in them is repaired.
    public var lines: [String] { byteLines.map { String(decoding: $0, as: UTF8.self) } }

    /// The value of the first field of this name.
    public subscript(name: String) -> String? {
      value(of: name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The whole message in one line, as `READY=1 STATUS=Serving (1 descriptor) from pid 4242`.
    public var description: String {
      let descriptors =
        switch descriptorCount {
        case 0: ""
        case 1: " (1 descriptor)"
        default: " (\(descriptorCount) descriptors)"
        }
      return lines.joined(separator: " ") + descriptors + " from pid \(senderPID)"
    }

    /// Whether it has this field, with this value if one is given; true where no field is named.
    func has(_ name: String?, _ value: String?) -> Bool {
      guard let name else { return true }
      return self[name] != nil && (value == nil || self[name] == value)
    }

    // MARK: Parsing

    /// As systemd splits it.
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

    /// Name and value of a line; `nil` without a '='.
    static func split(_ line: ArraySlice<UInt8>) -> (
      name: ArraySlice<UInt8>, value: ArraySlice<UInt8>
    )? {
      guard let sign = line.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      return (line[..<sign], line[(sign + 1)...])
    }
  }

  /// What a service has told of itself.
  public struct ServiceState: Sendable, Hashable {
    /// `READY=1` has come.
    public internal(set) var isReady = false
    /// `RELOADING=1` has come, and `READY=1` not yet after it.
    public internal(set) var isReloading = false
    /// `STOPPING=1` has come.
    public internal(set) var isStopping = false
    /// The last `STATUS=`; empty when there was none or it was cleared.
    public internal(set) var status = ""
    /// How many pings have come.
    public internal(set) var watchdogPings = 0
    /// How many reloads have begun.
    public internal(set) var reloadsBegun = 0
    /// How many of them have ended.
    public internal(set) var reloadsEnded = 0
    /// How many barriers were answered.
    public internal(set) var barriers = 0
  }
}
