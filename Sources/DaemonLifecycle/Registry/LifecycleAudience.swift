/// Who receives a step, in order, cut into groups: those of one group receive together, and the next group after them.
struct LifecycleAudience<Member: Sendable>: Sendable {
  /// Consecutive members: of a concurrent segment all receive together, of any other one after another.
  struct Segment: Sendable {
    fileprivate(set) var end: Int
    let isConcurrent: Bool
  }

  private(set) var members: [Member] = []
  /// Without gaps, and none of them empty.
  private(set) var segments: [Segment] = []

  mutating func reserve(_ count: Int) { members.reserveCapacity(count) }

  /// Adds a member that receives after those that are there; or `together` with the last of them, and with all that
  /// receive together with that.
  mutating func append(_ member: Member, together isTogether: Bool = false) {
    members.append(member)
    guard isTogether, members.count > 1 else { return extend(isConcurrent: false) }
    if segments[segments.endIndex - 1].isConcurrent { return extend(isConcurrent: true) }
    // The last one was alone until now.
    segments[segments.endIndex - 1].end -= 1
    let isEmpty = segments.last?.end == (segments.dropLast().last?.end ?? 0)
    if isEmpty { segments.removeLast() }
    segments.append(Segment(end: members.count, isConcurrent: true))
  }

  private mutating func extend(isConcurrent: Bool) {
    if let last = segments.last, last.isConcurrent == isConcurrent {
      segments[segments.endIndex - 1].end = members.count
    } else {
      segments.append(Segment(end: members.count, isConcurrent: isConcurrent))
    }
  }

  /// How many groups there are from `index` on, which is the first of its group.
  func groupCount(from index: Int) -> Int {
    var (count, start) = (0, index)
    for segment in segments where segment.end > start {
      count += segment.isConcurrent ? 1 : segment.end - start
      start = segment.end
    }
    return count
  }
}
