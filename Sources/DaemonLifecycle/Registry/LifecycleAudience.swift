/// Who hears a step, in order, cut into groups: those of one group hear together, and the next group after them.
struct LifecycleAudience<Member: Sendable>: Sendable {
  /// Consecutive members: of a concurrent stretch all hear together, of any other one after another.
  struct Stretch: Sendable {
    fileprivate(set) var end: Int
    let isConcurrent: Bool
  }

  private(set) var members: [Member] = []
  /// Without gaps, and none of them empty.
  private(set) var stretches: [Stretch] = []

  mutating func reserve(_ count: Int) { members.reserveCapacity(count) }

  /// Adds a member that hears after those that are there; or `together` with the last of them, and with all that
  /// hear together with that.
  mutating func append(_ member: Member, together isTogether: Bool = false) {
    members.append(member)
    guard isTogether, members.count > 1 else { return extend(isConcurrent: false) }
    if stretches[stretches.endIndex - 1].isConcurrent { return extend(isConcurrent: true) }
    // The last one was alone until now.
    stretches[stretches.endIndex - 1].end -= 1
    let isEmpty = stretches.last?.end == (stretches.dropLast().last?.end ?? 0)
    if isEmpty { stretches.removeLast() }
    stretches.append(Stretch(end: members.count, isConcurrent: true))
  }

  private mutating func extend(isConcurrent: Bool) {
    if stretches.last?.isConcurrent == isConcurrent {
      stretches[stretches.endIndex - 1].end = members.count
    } else {
      stretches.append(Stretch(end: members.count, isConcurrent: isConcurrent))
    }
  }

  /// The stretch that the member at `index` is in.
  func stretch(at index: Int) -> Stretch? { stretches.first { $0.end > index } }

  /// How many groups there are from `index` on, which is the first of its group.
  func groupCount(from index: Int) -> Int {
    var (count, start) = (0, index)
    for stretch in stretches where stretch.end > start {
      count += stretch.isConcurrent ? 1 : stretch.end - start
      start = stretch.end
    }
    return count
  }

  /// As lists.
  var groups: [[Member]] {
    var (groups, start): ([[Member]], Int) = ([], 0)
    for stretch in stretches {
      let part = members[start..<stretch.end]
      groups += stretch.isConcurrent ? [Array(part)] : part.map { [$0] }
      start = stretch.end
    }
    return groups
  }
}
