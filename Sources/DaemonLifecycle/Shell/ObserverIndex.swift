// SPDX-License-Identifier: Apache-2.0
/// Finds observers and closures by their object, and numbers the observers of a type. Each is also in the machine's
/// table, and leaves both at once.
///
/// Lists, since the first use of a dictionary searches all conformances of the program, a tenth of a start.
struct ObserverIndex: Sendable {
  /// Sorted by the address of their object, then by id, without closures that have no owner. A member whose object is
  /// gone may have the address of a living one.
  private var members: [Member] = []
  /// For observers named after their type: how many there are, and the number of the last one. Observers that are held
  /// weakly come and go, and have no number.
  private var types: [TypeCount] = []
  private struct TypeCount {
    let type: ObjectIdentifier
    var count: Int
    var last: Int
  }

  /// Returns the number of the next observer of a type.
  func nextNumber(of type: any Any.Type) -> Int {
    (types.first { $0.type == ObjectIdentifier(type) }?.last ?? 0) + 1
  }

  mutating func insert(_ member: Member) {
    if let (type, number) = member.numberedType {
      if let index = types.firstIndex(where: { $0.type == type }) {
        types[index].count += 1
        types[index].last = number
      } else {
        types.append(TypeCount(type: type, count: 1, last: number))
      }
    }
    guard let address = member.ownerID else { return }
    members.insert(member, at: position(of: address, member.id.value))
  }

  mutating func remove(_ member: Member) {
    if let (type, _) = member.numberedType,
      let index = types.firstIndex(where: { $0.type == type })
    {
      types[index].count -= 1
      if types[index].count == 0 { types.remove(at: index) }
    }
    guard let address = member.ownerID else { return }
    members.remove(at: position(of: address, member.id.value))
  }

  /// Returns the index of the first member at or after this address and id.
  private func position(of address: ObjectIdentifier, _ id: UInt64) -> Int {
    members.partitioningIndex { ($0.ownerID!, $0.id.value) >= (address, id) }
  }

  /// Whether this very object, which the caller holds, is an observer.
  func hasObserver(_ object: ObjectIdentifier) -> Bool {
    living(of: object).contains(where: \.isObserver)
  }

  /// Returns all members of an object that the caller holds, as an observer and as an owner.
  func ids(of object: ObjectIdentifier) -> [ObserverID] { living(of: object).map(\.id) }

  private func living(of object: ObjectIdentifier) -> [Member] {
    members[position(of: object, 0)...].prefix { $0.ownerID == object }.filter { $0.target != nil }
  }
}
