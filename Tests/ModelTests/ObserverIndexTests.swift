// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Table and index beside plain dictionaries: ids, slots and objects that come, go, and die while they are registered.
@Suite struct ObserverIndexTests {
  private final class Observer: LifecycleObserver {}

  /// An object, held or dead, and what it has registered.
  private struct Owner {
    var object: Observer?
    let address: ObjectIdentifier
    var observer: ObserverID?
    var closures: Set<ObserverID> = []
  }

  private struct Model {
    var table = LifecycleMembers()
    var index = ObserverIndex()
    var entries: [ObserverID: Member] = [:]
    var owners: [Owner] = []
    var lastID: UInt64 = 0
    /// Ids of those that were removed.
    var gone: [ObserverID] = []

    /// Whether the table has known, before, if it is an observer already.
    mutating func addObserver(_ index: Int) -> Bool {
      guard let object = owners[index].object else { return true }
      let isThere = owners[index].observer != nil
      guard self.index.hasObserver(ObjectIdentifier(object)) == isThere else { return false }
      if !isThere {
        owners[index].observer = insert {
          Member(
            id: $0, observer: object, isOwned: false, number: 1, hooks: .of(type(of: object)),
            .init())
        }
      }
      return true
    }

    mutating func addClosure(_ index: Int) {
      guard let object = owners[index].object else { return }
      let id = insert {
        Member(id: $0, closures: [.wildcard { _ in }], owner: object, .init(), name: .given("a"))
      }
      owners[index].closures.insert(id)
    }

    mutating func remove(_ id: ObserverID) {
      let entry = entries.removeValue(forKey: id)
      let isSame = table.remove(id) === entry
      #expect(isSame)
      if let entry { index.remove(entry) }
      gone.append(id)
      for index in owners.indices {
        if owners[index].observer == id { owners[index].observer = nil }
        owners[index].closures.remove(id)
      }
    }

    mutating func removeAll() {
      #expect(table.removeAll().count == entries.count)
      for entry in entries.values { index.remove(entry) }
      gone += entries.keys
      entries = [:]
      owners = []
    }

    mutating func insert(_ make: (ObserverID) -> Member) -> ObserverID {
      lastID += 1
      let id = table.nextID(lastID)
      let entry = make(id)
      table.add(entry)
      index.insert(entry)
      entries[id] = entry
      return id
    }
  }

  @Test(arguments: 0..<8) func asADictionary(part: UInt64) {
    var random = SeededGenerator(seed: part)
    var model = Model()
    var reused = 0
    for step in 0..<800 {
      let index = model.owners.indices.randomElement(using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        let object = Observer()
        let address = ObjectIdentifier(object)
        if model.owners.contains(where: { $0.address == address }) { reused += 1 }
        model.owners.append(Owner(object: object, address: address))
      case 1:
        if let index, !model.addObserver(index) {
          Issue.record("part \(part), step \(step): hasObserver")
          return
        }
      case 2: if let index { model.addClosure(index) }
      case 3:
        _ = model.insert {
          Member(id: $0, closures: [.wildcard { _ in }], owner: nil, .init(), name: .given("a"))
        }
      case 4:
        // Dies with all that it has registered; its address is free for another.
        if let index { model.owners[index].object = nil }
      case 5, 6:
        let ids = model.entries.keys.sorted()
        if let id = ids.randomElement(using: &random) { model.remove(id) }
      default: if step % 97 == 0 { model.removeAll() }
      }
      if let problem = difference(model) {
        Issue.record("part \(part), step \(step): \(problem)")
        return
      }
    }
    #expect(reused > 0, "no object has had the address of one that was dead and not removed")
  }

  private func difference(_ model: Model) -> String? {
    if model.table.count != model.entries.count { return "count" }
    for (id, entry) in model.entries where model.table[id] !== entry { return "\(id)" }
    for id in model.gone where model.table[id] != nil { return "\(id) is gone" }
    if Set(model.entries.keys.map(\.slot)).count != model.entries.count { return "slots" }
    for owner in model.owners {
      // Of those that are alive: each at its own address. What dead ones with that address have left may be named
      // too, but nothing that a living one has may be missing.
      guard owner.object != nil else { continue }
      let ids = model.index.ids(of: owner.address)
      let own = Set(owner.closures).union(owner.observer.map { [$0] } ?? [])
      if !own.isSubset(of: ids) { return "\(own) is not all named: \(ids)" }
      for id in Set(ids).subtracting(own) where model.entries[id]?.target != nil {
        return "\(id) belongs to another"
      }
      if model.index.hasObserver(owner.address) != (owner.observer != nil) { return "hasObserver" }
    }
    return nil
  }
}
