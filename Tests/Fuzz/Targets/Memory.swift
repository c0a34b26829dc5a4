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
    if kind == 0 { return checkName(name, bytes) }
    let file = OwnedDescriptor(owning: fuzz_memory(bytes, bytes.count, kind == 1))
    let passed = try PassedDescriptors(duplicating: [(file.rawValue, "state")])
    let store = try DescriptorStore(ServiceEnvironment([:], processID: 1, processInode: nil))
    let preservation = Preservation(passed: passed, store: store)
    do throws(SystemdError) {
      let read = try preservation.preservedBytes(named: "state", limit: limit)
      require(kind == 1 && bytes.count <= limit && read == bytes, "\(read as Any) was read")
    } catch {
      requireSentence(error)
      require(kind != 1 || bytes.count > limit, "\(error)")
      require(preservation.names() == ["state"], "it is not there any more")
      checkHandover(preservation, bytes, isSealed: kind == 1)
    }
    do throws(SystemdError) {
      require(try file.memoryBytes() == bytes && kind == 1, "it can be changed")
    } catch {
      requireSentence(error)
      require(kind != 1, "\(error)")
    }
    require(try preservation.preservedBytes(named: "none") == nil, "something of no name")
  }

  private static func checkHandover(
    _ preservation: Preservation, _ bytes: [UInt8], isSealed: Bool
  ) {
    do {
      guard let read = try preservation.preservedBytes(named: "state") else {
        return require(false, "it is not there any more")
      }
      let value = try JSONDecoder().decode(Handover.self, from: Data(read))
      require(isSealed, "it can be changed")
      let again = try JSONDecoder().decode(Handover.self, from: JSONEncoder().encode(value))
      require(again == value, "\(value) became \(again)")
      require(try preservation.preserve(read, named: "x") == .noStore, "there is no store")
    } catch { require("\(error)".utf8.count > 10, "no reason: \(error)") }
  }

  private static func checkName(_ name: String, _ bytes: [UInt8]) {
    do throws(SystemdError) {
      let memory = try OwnedDescriptor.memory(named: name, bytes)
      require(name.utf8.count <= 249 && !name.utf8.contains(0), "\(name) is no name")
      require(try memory.memoryBytes() == bytes, "other bytes")
    } catch { requireSentence(error) }
  }
}
