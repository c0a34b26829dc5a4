// SPDX-License-Identifier: Apache-2.0
import CFuzz

@testable import standby

extension FuzzTarget {
  /// standby's command line, an argument a line; behind an empty line the ledger that another process writes, in two
  /// parts.
  static let standby = FuzzTarget(name: "standby") { input in
    let arguments = input.arguments()
    do throws(UsageError) {
      let options = try Options(parsing: arguments)
      require(
        options.wantsHelp || options.wantsVersion || !options.ledger.isEmpty, "no ledger")
      require(
        options.interval >= .milliseconds(1) && options.interval <= .seconds(3600), "\(options)")
      require(!options.name.contains { $0.isNewline }, "its lines are no lines")
    } catch { requireSentence(error) }
    do throws(SystemError) {
      _ = try Ledger("/")
      require(false, "a directory is no ledger")
    } catch { requireSentence(error) }
    try checkLedger(input.part(endedBy: 0), input.all())
  }

  private static func checkLedger(_ first: [UInt8], _ second: [UInt8]) throws {
    guard let path = file(with: first) else { return }
    let ledger = try Ledger(path)
    var lines = try ledger.newLines()
    require(try ledger.halfLine() == half(first), "another half line")
    fuzz_append(path, second, second.count)
    lines += try ledger.newLines()
    let all = first + second
    let expected = all.split(separator: 10, omittingEmptySubsequences: false).dropLast()
    require(
      lines == expected.map { String(decoding: $0, as: UTF8.self) }, "\(lines) were read of \(all)")
    require(try ledger.lock(), "it is locked")
    require(try !Ledger(path).lock(), "two have it locked")
    try ledger.dropHalfLine()
    try ledger.append("x")
    require(try ledger.newLines() == ["x"] && ledger.halfLine().isEmpty, "it has another end")
    ledger.unlock()
  }

  private static func half(_ bytes: [UInt8]) -> String {
    let end = bytes.lastIndex(of: 10).map { $0 + 1 } ?? 0
    return String(decoding: bytes[end...], as: UTF8.self)
  }
}
