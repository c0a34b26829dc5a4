// SPDX-License-Identifier: Apache-2.0
/// A notification message: its fields, checked and encoded.
package struct NotifyMessage {
  /// The `NAME=value` lines, with a line break after each but the last; at most `maximumSize` bytes.
  let bytes: [UInt8]

  /// The largest message that pid 1 reads (`PIPE_BUF`, since the protocol exists). It drops a longer one with all its
  /// fields, so a status is cut to fit.
  package static let maximumSize = 4096
  /// The largest number of descriptors of a message: the kernel's SCM_MAX_FD.
  static let maximumDescriptors = 253

  init(_ fields: [NotifyField], descriptorCount: Int) throws(SystemdError) {
    guard !fields.isEmpty else {
      throw .invalidArgument("A notification needs at least one field.")
    }
    var lines: [NotifyField.Line] = []
    for field in fields { lines += try field.lines() }
    try NotifyMessage.checkTogether(lines.map(\.name))
    try NotifyMessage.checkDescriptors(fields, count: descriptorCount)
    var bytes: [UInt8] = []
    for line in lines where line.name != "STATUS" {
      bytes.append(contentsOf: "\(line.name)=\(line.value)\n".utf8)
    }
    for case .status(let text) in fields {  // at most one, last, with the room that is left
      bytes.append(contentsOf: "STATUS=".utf8)
      let room = NotifyMessage.maximumSize - bytes.count
      let line = StatusText.line(text, maximumSize: max(room, 0))
      guard room >= 0, text.isEmpty || !line.isEmpty else {  // an empty one would clear the status
        throw .invalidArgument(
          "The other fields leave no room for STATUS=. Send it in a message of its own.")
      }
      bytes.append(contentsOf: line)
    }
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard bytes.count <= NotifyMessage.maximumSize else {
      throw .invalidArgument(
        "The notification has \(bytes.count) bytes; the service manager reads \(NotifyMessage.maximumSize) and drops"
          + " a longer one. Send its fields in several messages.")
    }
    self.bytes = bytes
  }

  // MARK: Rules between fields

  private static func checkTogether(_ all: [String]) throws(SystemdError) {
    var names: Set<String> = []
    for name in all where !names.insert(name).inserted {
      throw .invalidArgument(
        "The notification has \(name)= twice, of which the service manager would read one."
          + " Send two messages.")
    }
    if names.contains("STOPPING"), names.contains("READY") || names.contains("RELOADING") {
      throw .invalidArgument("STOPPING=1 is final: READY=1 or RELOADING=1 can't go with it.")
    }
    if names.contains("MAINPIDFDID"), !names.contains("MAINPID") {
      throw .invalidArgument("MAINPIDFDID= says more about MAINPID=, which must go with it.")
    }
    if names.contains("MAINPIDFD"), names.contains("MAINPID") || names.contains("FDSTORE") {
      throw .invalidArgument(
        "MAINPIDFD=1 can't go with MAINPID= or FDSTORE=1: only one of them is meant.")
    }
  }

  private static func checkDescriptors(_ fields: [NotifyField], count: Int) throws(SystemdError) {
    guard count <= maximumDescriptors else {
      throw .invalidArgument(
        "A message carries at most \(maximumDescriptors) descriptors, not \(count). Send several.")
    }
    var wanted = false
    for field in fields {
      switch field {
      case .storeDescriptors(let name, _):
        wanted = true
        guard count > 0 else {
          throw .invalidArgument("FDSTORE=1 for \"\(name)\" needs a descriptor to be sent with it.")
        }
      case .mainPIDFD:
        wanted = true
        guard count == 1 else {
          throw .invalidArgument("MAINPIDFD=1 needs exactly one descriptor, a pidfd, not \(count).")
        }
      default: break
      }
    }
    guard wanted || count == 0 else {
      throw .invalidArgument(
        "The service manager closes descriptors that come without FDSTORE=1 or MAINPIDFD=1.")
    }
  }
}

// MARK: - Fields as lines

extension NotifyField {
  typealias Line = (name: String, value: String)

  package static let knownNames: Set<String> = [
    "READY", "RELOADING", "STOPPING", "MONOTONIC_USEC", "STATUS", "NOTIFYACCESS", "ERRNO",
    "BUSERROR", "VARLINKERROR", "EXIT_STATUS", "MAINPID", "MAINPIDFDID", "MAINPIDFD", "WATCHDOG",
    "WATCHDOG_USEC", "EXTEND_TIMEOUT_USEC", "RESTART_RESET", "FDSTORE", "FDSTOREREMOVE", "FDNAME",
    "FDPOLL", "BARRIER",
  ]

  /// Returns the lines of this field, after a check of its values.
  func lines() throws(SystemdError) -> [Line] {
    switch self {
    case .ready: [("READY", "1")]
    case .stopping: [("STOPPING", "1")]
    case .reloading(let time): [("RELOADING", "1"), ("MONOTONIC_USEC", String(time))]
    case .status(let text): [("STATUS", text)]
    case .extendTimeout(let time): [try Self.line("EXTEND_TIMEOUT_USEC", time, least: 1)]
    case .watchdog: [("WATCHDOG", "1")]
    case .watchdogTrigger: [("WATCHDOG", "trigger")]
    case .watchdogPeriod(let time): [try Self.line("WATCHDOG_USEC", time, least: 0)]
    case .errno(let number): [try Self.line("ERRNO", number, in: 0...4095)]
    case .busError(let name): [try Self.line("BUSERROR", errorName: name)]
    case .varlinkError(let name): [try Self.line("VARLINKERROR", errorName: name)]
    case .exitStatus(let number): [try Self.line("EXIT_STATUS", number, in: 0...255)]
    // The cases are systemd's words.
    case .notifyAccess(let access): [("NOTIFYACCESS", "\(access)")]
    case .restartReset: [("RESTART_RESET", "1")]
    // 1 is the service manager.
    case .mainPID(let pid): [try Self.line("MAINPID", pid, in: 2...Int32.max)]
    case .mainPIDFDID(let inode): [("MAINPIDFDID", String(inode))]
    case .mainPIDFD: [("MAINPIDFD", "1")]
    case .storeDescriptors(let name, let polled):
      [("FDSTORE", "1"), ("FDNAME", try DescriptorName.checked(name))]
        + (polled ? [] : [("FDPOLL", "0")])
    case .removeDescriptors(let name):
      [("FDSTOREREMOVE", "1"), ("FDNAME", try DescriptorName.checked(name))]
    case .custom(let name, let value): [(name, try checkedCustom(name, value))]
    }
  }

  private static func line(
    _ name: String, _ number: Int32, in range: ClosedRange<Int32>
  ) throws(SystemdError) -> Line {
    guard range.contains(number) else {
      throw .invalidArgument(
        "\(name)=\(number) can't be: it is between \(range.lowerBound) and \(range.upperBound).")
    }
    return (name, String(number))
  }

  private static func line(
    _ name: String, errorName text: String
  ) throws(SystemdError) -> Line {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let valid = parts.allSatisfy { part in
      !part.isEmpty
        && part.allSatisfy {
          $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
        }
    }
    guard valid, parts.count >= 2, text.utf8.count <= 255 else {
      throw .invalidArgument(
        "\(name)= takes a name such as org.example.Error.Failed, not \"\(text)\".")
    }
    return (name, text)
  }

  private func checkedCustom(_ name: String, _ value: String) throws(SystemdError) -> String {
    let valid = name.utf8.allSatisfy { $0.isUppercase || $0.isDigit || $0 == UInt8(ascii: "_") }
    guard valid, name.utf8.first?.isUppercase == true else {
      throw .invalidArgument(
        "\"\(name)\" can't name a field: it begins with A–Z, and A–Z, 0–9 and _ may follow.")
    }
    guard !NotifyField.knownNames.contains(name) else {
      throw .invalidArgument("\(name)= is not a custom field: use the case of NotifyField for it.")
    }
    guard value.utf8.allSatisfy({ !$0.isControl }) else {
      throw .invalidArgument("The value of \(name)= has a line break or another control character.")
    }
    return value
  }

  /// A line with a time in microseconds, rounded up so that it never becomes zero.
  private static func line(
    _ name: String, _ time: Duration, least: UInt64
  ) throws(SystemdError) -> Line {
    let (seconds, attoseconds) = time.components
    let fraction = (attoseconds + 999_999_999_999) / 1_000_000_000_000
    guard time >= .zero else {
      throw .invalidArgument("\(name)= can't be negative, as \(time) is.")
    }
    let (scaled, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000)
    let (sum, overflow2) = scaled.addingReportingOverflow(UInt64(fraction))
    guard !overflow, !overflow2, sum < .max else {  // the highest means infinity in systemd
      throw .invalidArgument("\(name)= can't be \(time): that is more than 2^64 microseconds.")
    }
    guard sum >= least else { throw .invalidArgument("\(name)= can't be zero.") }
    return (name, String(sum))
  }
}
