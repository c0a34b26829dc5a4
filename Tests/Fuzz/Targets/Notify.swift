// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// Fields for the service manager: what is sent is a line for each, as the manager reads them, and nothing more.
  static let notify = FuzzTarget(name: "notify") { input in
    let name = input.lineText()
    checkStore(name: name, polled: input.bool())
    var fields: [NotifyField] = []
    while !input.isEmpty, fields.count < 12 { fields.append(field(&input)) }
    do throws(SystemdError) {
      let bytes = try NotifyMessage(fields).bytes
      require(bytes.count <= NotifyMessage.maximumSize, "\(bytes.count) bytes")
      checkMessage(bytes, of: fields)
    } catch { requireSentence(error) }
  }

  private static func checkStore(name: String, polled: Bool) {
    do throws(SystemdError) {
      let stored = try NotifyMessage.storing(name, polled: polled).bytes
      let expected = ["FDSTORE=1", "FDNAME=\(name)"] + (polled ? [] : ["FDPOLL=0"])
      require(DescriptorName.isValid(name.utf8) && lines(stored) == expected, "\(expected)")
      let removed = lines(try NotifyMessage.removing(name).bytes)
      require(removed == ["FDSTOREREMOVE=1", "FDNAME=\(name)"], "\(name) is removed")
    } catch { requireSentence(error) }
  }

  private static func lines(_ message: [UInt8]) -> [String] {
    message.split(separator: 10).map { unescaped($0) }
  }

  private static func checkMessage(_ bytes: [UInt8], of fields: [NotifyField]) {
    let text = String(validating: bytes, as: UTF8.self) ?? ""
    require(text.utf8.count == bytes.count, "it is not UTF-8")
    let lines = text.utf8.split(separator: 10, omittingEmptySubsequences: false).map {
      $0.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        .map { unescaped($0) }
    }
    require(lines.allSatisfy { $0.count == 2 }, "a line without a sign in \(lines)")
    let names = lines.map { $0[0] }
    require(Set(names).count == names.count, "a name twice in \(names)")
    // Nothing that was not asked for: no value has a second field in it.
    let expected = fields.flatMap { (try? $0.lines()) ?? [] }
    require(names.sorted() == expected.map(\.name).sorted(), "\(names) of \(expected)")
    for line in lines where line[0] != "STATUS" {
      require(expected.contains { $0.name == line[0] && $0.value == line[1] }, "\(line)")
    }
    for case .status(let status) in fields {
      let sent = lines.first { $0[0] == "STATUS" }?[1] ?? ""
      require(sent.isEmpty == status.isEmpty, "\"\(status)\" became \"\(sent)\"")
      let shown = VisibleText.line(status)
      require(shown.utf8.starts(with: sent.utf8), "\"\(shown)\" became \"\(sent)\"")
      require(VisibleText.line(shown) == shown, "escaped twice it is another: \(shown)")
      require(
        shown.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 },
        "control characters of \(status)")
      let excerpt = VisibleText.excerpt(status)
      require(
        status.unicodeScalars.count > 200 ? excerpt.hasSuffix("…") : excerpt == shown,
        "the excerpt \"\(excerpt)\" of \"\(shown)\"")
    }
  }

  /// As systemd reads it: a backslash is an escape.
  private static func unescaped(_ text: some Sequence<UInt8>) -> String {
    var (isEscape, bytes) = (false, [UInt8]())
    for byte in text {
      isEscape = byte == UInt8(ascii: "\\") && !isEscape
      if !isEscape { bytes.append(byte) }
    }
    require(!isEscape, "a backslash at the end of \(text)")
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func duration(_ input: inout FuzzInput) -> Duration {
    Duration(
      secondsComponent: input.number(),
      attosecondsComponent: input.number() % 1_000_000_000_000_000_000)
  }

  private static func field(_ input: inout FuzzInput) -> NotifyField {
    switch input.below(11) {
    case 0: .ready
    case 1: .stopping
    // Not without a time, which would be that of each rendering.
    case 2: .reloading(at: duration(&input))
    case 3: .status(input.countedText())
    case 4: .extendTimeout(duration(&input))
    case 5: .watchdog
    case 6: .exitStatus(Int32(input.number(Int16.self)))
    case 7: .custom(name: "RESTART_RESET", value: "1")
    case 8: .custom(name: input.countedText(), value: input.countedText())
    case 9: .custom(name: systemdNames[input.below(systemdNames.count)], value: input.countedText())
    // Longer than a message.
    default: .status(String(repeating: input.countedText(), count: Int(input.byte())))
    }
  }

  private static let systemdNames = [
    "MAINPID", "MAINPIDFDID", "ERRNO", "BUSERROR", "NOTIFYACCESS", "WATCHDOG", "WATCHDOG_USEC",
    "BARRIER", "EXTEND_TIMEOUT_USEC", "EXIT_STATUS",
  ]
}
