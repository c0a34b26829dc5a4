// SPDX-License-Identifier: Apache-2.0
import CFuzz
import CLinux
import FoundationEssentials

@testable import DaemonSystemd
@testable import echod

extension FuzzTarget {
  /// A file that an earlier run has left: what is read of it is all of it, if nobody can change it any more; a value that
  /// decodes is the same after another round.
  static let memory = FuzzTarget(name: "memory") { input in
    let (kind, limit) = (input.below(4), Int(input.number(UInt16.self)))
    let name = input.lineText()
    let bytes = input.all()
    if kind == 0 { return checkMade(name, bytes) }
    let file = OwnedDescriptor(owning: fuzz_memory(bytes, bytes.count, kind == 1))
    let passed = try PassedDescriptors(duplicating: [(file.rawValue, name)])
    let preservation = Preservation(
      passed: passed, notify: try NotifySocket(address: nil), limit: 0)
    do throws(SystemdError) {
      let read = try preservation.preservedBytes(named: name, limit: limit)
      require(kind == 1 && bytes.count <= limit && read == bytes, "\(read as Any) was read")
    } catch {
      requireSentence(error)
      require(kind != 1 || bytes.count > limit, "\(error)")
      require(preservation.names() == [name], "it is not there any more")
      checkHandover(preservation, name, bytes, isSealed: kind == 1)
    }
    do throws(SystemdError) {
      require(try file.memoryBytes() == bytes && kind == 1, "it can be changed")
    } catch {
      requireSentence(error)
      require(kind != 1, "\(error)")
    }
    require(try preservation.preservedBytes(named: name + "x") == nil, "something of no name")
  }

  private static func checkHandover(
    _ preservation: Preservation, _ name: String, _ bytes: [UInt8], isSealed: Bool
  ) {
    do {
      guard let read = try preservation.preservedBytes(named: name) else {
        return require(false, "it is not there any more")
      }
      let value = try JSONDecoder().decode(Handover.self, from: Data(read))
      require(isSealed, "it can be changed")
      let again = try JSONDecoder().decode(Handover.self, from: JSONEncoder().encode(value))
      require(again == value, "\(value) became \(again)")
      try preservation.preserve(read, named: "x")
    } catch { require("\(error)".utf8.count > 10, "no reason: \(error)") }
  }

  private static func checkMade(_ name: String, _ bytes: [UInt8]) {
    do throws(SystemdError) {
      let memory = try OwnedDescriptor.memory(named: name, bytes)
      require(try memory.memoryBytes() == bytes, "other bytes")
    } catch { requireSentence(error) }
  }
}
