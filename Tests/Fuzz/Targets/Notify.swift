// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// Fields for the service manager: what is sent is a line for each, as the manager reads them, and nothing more.
  static let notify = FuzzTarget(name: "notify") { input in
    let descriptorCount = input.bool() ? Int(input.number(UInt16.self)) : input.below(3)
    var fields: [NotifyField] = []
    while !input.isEmpty, fields.count < 12 { fields.append(field(&input)) }
    do throws(SystemdError) {
      let bytes = try NotifyMessage(fields, descriptorCount: descriptorCount).bytes
      require(bytes.count <= NotifyMessage.maximumSize, "\(bytes.count) bytes")
      require(descriptorCount <= 253, "\(descriptorCount) descriptors")
      checkMessage(bytes, of: fields)
    } catch { requireSentence(error) }
  }

  private static func checkMessage(_ bytes: [UInt8], of fields: [NotifyField]) {
    let text = String(validating: bytes, as: UTF8.self) ?? ""
    require(text.utf8.count == bytes.count, "it is not UTF-8")
    let lines = text.utf8.split(separator: 10, omittingEmptySubsequences: false).map {
      $0.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        .map { String($0) ?? "" }
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
        VisibleText.lines(status).unicodeScalars.allSatisfy {
          $0.value >= 32 && $0.value != 127 || $0 == "\n" || $0 == "\t"
        }, "control characters of \(status)")
      require(StatusText.line(status, maximumSize: 16).count <= 16, "\(status) does not fit")
    }
  }

  private static func duration(_ input: inout FuzzInput) -> Duration {
    Duration(
      secondsComponent: input.number(),
      attosecondsComponent: input.number() % 1_000_000_000_000_000_000)
  }

  private static func field(_ input: inout FuzzInput) -> NotifyField {
    switch input.below(21) {
    case 0: .ready
    case 1: .stopping
    case 2: .reloading(at: input.number())
    case 3: .status(input.countedText())
    case 4: .extendTimeout(duration(&input))
    case 5: .watchdog
    case 6: .watchdogTrigger
    case 7: .watchdogPeriod(duration(&input))
    case 8: .errno(input.number())
    case 9: .busError(input.countedText())
    case 10: .varlinkError(input.countedText())
    case 11: .exitStatus(Int32(input.number(Int16.self)))
    case 12: .notifyAccess([.none, .main, .exec, .all][input.below(4)])
    case 13: .restartReset
    case 14: .mainPID(input.number())
    case 15: .mainPIDFDID(input.number())
    case 16: .mainPIDFD
    case 17: .storeDescriptors(name: input.countedText(), polled: input.bool())
    case 18: .removeDescriptors(name: input.countedText())
    case 19: .custom(name: input.countedText(), value: input.countedText())
    // Longer than a message.
    default: .status(String(repeating: input.countedText(), count: Int(input.byte())))
    }
  }
}
