import TestSupport
import Testing

@testable import DaemonSystemd

/// Whatever comes over the bus is read as what its interface promises, or refused with a sentence.
@Suite(.offThePool) struct BusValueFuzzTests {
  private static let words = [
    "", "active", "ActiveState", "LoadState", "loaded", "not-found", "type", "reboot", "Display",
    "/",
    "s", "\u{0}", "ä",
  ]

  /// A value of any type, up to three levels deep.
  private func value(_ random: inout SeededGenerator, depth: Int = 0) -> BusValue {
    func word() -> String { Self.words[random.below(Self.words.count)] }
    func several() -> [BusValue] {
      (0..<random.below(4)).map { _ in value(&random, depth: depth + 1) }
    }
    switch random.below(depth < 3 ? 18 : 13) {
    case 0: return .byte(UInt8(random.below(256)))
    case 1: return .bool(random.below(2) == 0)
    case 2: return .int16(Int16(truncatingIfNeeded: random.next()))
    case 3: return .uint16(UInt16(truncatingIfNeeded: random.next()))
    case 4: return .int32(Int32(truncatingIfNeeded: random.next()))
    case 5: return .uint32(UInt32(truncatingIfNeeded: random.next()))
    case 6: return .int64(Int64(truncatingIfNeeded: random.next()))
    case 7: return .uint64(random.below(3) == 0 ? .max : random.next())
    case 8: return .double(Double(bitPattern: random.next()))
    case 9, 10: return .string(word())
    case 11: return .objectPath(word())
    case 12: return .signature(word())
    case 13: return .array(of: word(), several())
    case 14:
      let entries = several().map { BusValue.entry(.string(word()), .variant($0)) }
      return .array(of: "{sv}", entries)
    case 15:
      return .entry(value(&random, depth: depth + 1), value(&random, depth: depth + 1))
    case 16: return .structure(several())
    default: return .variant(value(&random, depth: depth + 1))
    }
  }

  @Test func anyValueIsReadOrRefusedWithASentence() {
    var random = SeededGenerator(seed: 2026)
    var (read, refused) = (0, 0)
    func check<Value>(_ result: Result<Value, BusError>) {
      switch result {
      case .success: read += 1
      case .failure(let error):
        refused += 1
        if !error.description.hasSuffix(".") { Issue.record("no sentence: \(error)") }
      }
    }
    for _ in 0..<SeededGenerator.inputs(usual: 20_000) {
      let value = value(&random)
      check(value.asBool("x"))
      check(value.asString("x"))
      check(value.asMicroseconds("x"))
      let signal = BusSignal(
        sender: ":1.1", member: "PrepareForSleep",
        arguments: [value, self.value(&random), self.value(&random)])
      check(signal.flag)
      if signal.changedProperties != nil { read += 1 }
      if signal.shutdownKind != nil { read += 1 }
    }
    #expect(read > 1000 && refused > 1000, "the generator meets both good and bad")
  }
}
