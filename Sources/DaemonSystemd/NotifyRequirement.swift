// SPDX-License-Identifier: Apache-2.0
/// What systemd requires of the value of one of its fields. It ignores a field with another value.
package enum NotifyRequirement {
  /// One of these words.
  case words([String])
  case number(ClosedRange<UInt64>)
  case descriptorName
  /// Text that is not empty.
  case text
  /// Any UTF-8.
  case status

  /// The requirement of a field; `nil` for one that systemd does not know.
  package init?(ofField name: String) {
    switch name {
    case "READY", "RELOADING", "STOPPING", "MAINPIDFD", "RESTART_RESET", "FDSTORE", "FDSTOREREMOVE",
      "BARRIER":
      self = .words(["1"])
    case "FDPOLL": self = .words(["0"])
    case "WATCHDOG": self = .words(["1", "trigger"])
    case "NOTIFYACCESS": self = .words(["none", "main", "exec", "all"])
    case "MONOTONIC_USEC", "WATCHDOG_USEC", "MAINPIDFDID": self = .number(0...UInt64.max)
    case "EXTEND_TIMEOUT_USEC": self = .number(1...UInt64.max)
    case "ERRNO": self = .number(0...4095)
    case "EXIT_STATUS": self = .number(0...255)
    // 1 is the service manager.
    case "MAINPID": self = .number(2...UInt64(Int32.max))
    case "FDNAME": self = .descriptorName
    case "BUSERROR", "VARLINKERROR": self = .text
    case "STATUS": self = .status
    default: return nil
    }
  }

  /// The reason why a value is ignored; `nil` if it is not.
  package func objection(to value: some Collection<UInt8>) -> String? {
    switch self {
    case .words(let words):
      let text = String(decoding: value, as: UTF8.self)
      return words.contains(text) ? nil : "only \(words.joined(separator: " or ")) means something"
    case .number(let range):
      guard let number = decimal(value, as: UInt64.self), range.contains(number) else {
        return "it is no number in \(range)"
      }
      return nil
    case .descriptorName:
      return DescriptorName.isValid(value) ? nil : "it is no name for a descriptor"
    case .text: return value.isEmpty ? "it is empty" : nil
    case .status: return String(validating: value, as: UTF8.self) == nil ? "it is not UTF-8" : nil
    }
  }
}
