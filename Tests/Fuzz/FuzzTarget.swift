// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A parser of what comes from outside, and what must be true of whatever it makes of any input.
struct FuzzTarget: Sendable {
  let name: String
  let check: @Sendable (inout FuzzInput) throws -> Void

  /// The program has all of them, so that it is built and linked once: `FUZZ_TARGET` says which is meant.
  static let all = [
    environment, pressure, platforms, listen, notify, addresses, journal, records, store, memory,
    pollerd, echod, standby,
  ]

  static let chosen: FuzzTarget = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = all.first(where: { $0.name == name }) else {
      fatalError("FUZZ_TARGET is \"\(name)\"; there are \(all.map(\.name)).")
    }
    return target
  }()
}

/// What libFuzzer calls with each input. A property that does not hold ends the process, and libFuzzer keeps the input.
@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var input = FuzzInput(Array(UnsafeBufferPointer(start: bytes, count: count)))
  do { try FuzzTarget.chosen.check(&input) } catch { require(false, "was refused: \(error)") }
  return 0
}

/// What must hold of every input.
func require(_ condition: Bool, _ problem: @autoclosure () -> String) {
  if condition { return }
  let line = "\(FuzzTarget.chosen.name): \(problem())\n"
  _ = line.withCString { clinux_write(2, $0, strlen($0)) }
  abort()
}

/// An error is a sentence.
func requireSentence(_ error: some CustomStringConvertible) {
  let bytes = error.description.utf8
  require(bytes.count > 10 && bytes.last == UInt8(ascii: "."), "no sentence: \(error)")
}
