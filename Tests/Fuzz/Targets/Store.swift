// SPDX-License-Identifier: Apache-2.0
import CFuzz
import DaemonSystemd

@testable import DaemonLifecycleState

extension FuzzTarget {
  /// A directory with two files of any content: what is loaded is what the newer whole one has, and after a save that is
  /// loaded.
  static let store = FuzzTarget(name: "store") { input in
    let (first, second) = (file(&input), file(&input))
    let version = UInt32(input.byte())
    var records: [StateRecord] = []
    for (slot, bytes) in [first, second].enumerated() {
      remove(slot)
      guard let bytes else { continue }
      fuzz_write("\(folder)/state.\(slot)", bytes, bytes.count)
      if case .whole(let record) = StateRecord.read(bytes) { records.append(record) }
    }
    let newest = records.max { $1.isNewer(than: $0) }
    let store = try StateStore(directory: folder, version: version, limit: 4096)
    defer { store.close() }
    do throws(StateError) {
      let found = try store.load()
      require(found?.generation == newest?.generation, "\(found as Any) of \(records)")
      guard let found, let newest else {
        require(first == nil && second == nil, "broken files are none")
        return checkSave(store, version)
      }
      let candidates = records.filter { $0.generation == newest.generation }
      require(
        candidates.contains { $0.bytes == found.bytes && $0.version == found.version },
        "\(found) of \(records)")
      require(found.version <= version, "it is newer")
      for sentence in found.broken { require(sentence.hasPrefix(folder), sentence) }
      checkSave(store, version)
    } catch {
      requireSentence(error)
      require((try? store.save([1])) == nil, "it saves over what it could not load: \(error)")
      require((try? store.setAside()) != nil, "it can't be set aside")
      checkSave(store, version)
    }
  }

  private static let folder = String(cString: fuzz_folder())

  /// As a disk or another program may have left it: none, any bytes, or a record, whole or damaged.
  private static func file(_ input: inout FuzzInput) -> [UInt8]? {
    let kind = input.below(4)
    if kind == 0 { return nil }
    if kind == 1 { return input.counted() }
    let record = StateRecord(
      version: UInt32(input.byte()),
      generation: input.bool() ? input.number() : UInt64(input.byte()),
      bytes: input.counted())
    return kind == 2 ? record.encoded : record.encoded.dropLast(Int(input.byte()) % 41)
  }

  private static func remove(_ slot: Int) {
    for suffix in ["", ".bad", ".bad.1", ".bad.2"] {
      fuzz_remove("\(folder)/state.\(slot)\(suffix)")
    }
  }

  private static func checkSave(_ store: StateStore, _ version: UInt32) {
    do throws(StateError) {
      try store.save([7, 8])
      let found = try store.load()
      require(found?.bytes == [7, 8] && found?.version == version, "\(found as Any) was saved")
      require(try !store.saveIfChanged([7, 8]), "it has not changed")
    } catch { require(false, "it can't save: \(error)") }
  }
}
