// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import Glibc
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.offThePool) struct BusUnitNameTests {
  @Test(arguments: [
    ("nginx.service", "nginx_2eservice"), ("getty@tty1.service", "getty_40tty1_2eservice"),
    ("1-a_b.timer", "_31_2da_5fb_2etimer"),
    ("dev-disk-by\\x2duuid.device", "dev_2ddisk_2dby_5cx2duuid_2edevice"),
    ("-.slice", "_2d_2eslice"), ("a:b.mount", "a_3ab_2emount"),
  ])
  func pathOfGoodName(name: String, label: String) throws {
    #expect(try UnitName(name).objectPath == "/org/freedesktop/systemd1/unit/" + label)
  }

  @Test(arguments: [
    "", "nginx", "nginx.", ".service", "nginx.servce", "nginx.service ", "a b.service",
    "a/b.service", "@.service",
    "@x.service", "getty@.service", "a\0b.service", "ü.service",
    String(repeating: "x", count: 248) + ".service",
  ])
  func badName(name: String) {
    #expect(throws: BusError.self) { try UnitName(name) }
  }

  @Test func longestName() throws {
    _ = try UnitName(String(repeating: "x", count: 247) + ".service")
  }

  /// Every label is a legal element of a path and tells what it was made of, so no two names share one.
  @Test func labelsAreReversible() {
    var random = BusRandom(state: 7)
    for _ in 0..<SeededGenerator.inputs(usual: 100_000) {
      let name = random.name()
      let label = UnitName.label(name)
      if BusRandom.unescaped(label) != Array(name.utf8) {
        Issue.record("\(name) became \(label)")
        return
      }
    }
  }

  /// The same as libsystemd's own escaping.
  @Test(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"))
  func labelsAreLibsystemds() throws {
    typealias Encode =
      @convention(c) (
        UnsafePointer<CChar>, UnsafePointer<CChar>,
        UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
      ) -> Int32
    let handle = try #require(dlopen(BusConnection.Options().library, RTLD_NOW))
    let encode = unsafeBitCast(try #require(dlsym(handle, "sd_bus_path_encode")), to: Encode.self)
    var random = BusRandom(state: 11)
    for _ in 0..<20_000 {
      let name = random.name()
      var path: UnsafeMutablePointer<CChar>?
      #expect(encode("/x", name, &path) >= 0)
      let theirs = path.map { String(cString: $0) }
      free(path)
      if theirs != "/x/" + UnitName.label(name) {
        Issue.record("\(name): \(theirs ?? "nothing")")
        return
      }
    }
  }

  @Test func timesSaturate() {
    #expect(MonotonicTime(microseconds: .max).advanced(by: .seconds(5)) == .distantFuture)
    #expect(MonotonicTime(microseconds: 7).microseconds == 7)
    #expect(MonotonicTime.after(.seconds(-1)).milliseconds == 0)
    #expect(MonotonicTime.distantFuture.milliseconds == .max)
  }
}

/// Names from a generator.
struct BusRandom {
  private var random: SeededGenerator
  init(state: UInt64) { random = SeededGenerator(seed: state) }

  mutating func next() -> UInt64 { random.next() }

  /// One to eight bytes, printable and not, but no zero.
  mutating func name() -> String {
    let bits = next()
    let length = Int(bits & 7) + 1
    let source = next()
    return String(unsafeUninitializedCapacity: 8) { buffer in
      for index in 0..<length {
        buffer[index] = UInt8(truncatingIfNeeded: source >> (8 * index)) & 0x7f | 1
      }
      return length
    }
  }

  /// The bytes that a label stands for; `nil` when it is no legal label.
  static func unescaped(_ label: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(label.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "_") {
        guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
        guard let high = digit(high), let low = digit(low) else { return nil }
        bytes.append(high << 4 | low)
      } else {
        let isDigit = byte >= 48 && byte <= 57
        let isLetter = byte >= 65 && byte <= 90 || byte >= 97 && byte <= 122
        guard isLetter || isDigit && !bytes.isEmpty else { return nil }
        bytes.append(byte)
      }
    }
    return bytes
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 97...102: byte - 87
    default: nil
    }
  }
}
