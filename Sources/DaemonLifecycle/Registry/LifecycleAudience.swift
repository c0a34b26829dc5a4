/// Who receives a step, in order, cut into groups: those of one group receive together, and the next group after them.
struct LifecycleAudience<Member: Sendable>: Sendable {
  /// Consecutive members: of a concurrent segment all receive together, of any other one after another.
  struct Segment: Sendable {
    let start: Int
    let isConcurrent: Bool
  }

  private(set) var members: [Member] = []
  /// Without gaps, and none of them empty.
  private(set) var segments: [Segment] = []

  mutating func reserve(_ count: Int) { members.reserveCapacity(count) }

  /// Adds a member that receives after those that are there; or `together` with the last of them, and with all that
  /// receive together with that.
  mutating func append(_ member: Member, together isTogether: Bool = false) {
    if let last = segments.last {
      if last.isConcurrent != isTogether { change(from: last) }
    } else {
      segments.append(Segment(start: 0, isConcurrent: false))
    }
    members.append(member)
  }

  /// Begins a segment of the other kind. A concurrent one takes the last member with it, which was alone until now.
  private mutating func change(from last: Segment) {
    let start = members.count - (last.isConcurrent ? 0 : 1)
    if last.start == start { segments.removeLast() }
    segments.append(Segment(start: start, isConcurrent: !last.isConcurrent))
  }

  /// Which members a segment has, by its number.
  func range(of segment: Int) -> Range<Int> {
    let end = segment + 1 < segments.count ? segments[segment + 1].start : members.count
    return segments[segment].start..<end
  }

  /// How many groups there are from `index` on, which is the first of its group.
  func groupCount(from index: Int) -> Int {
    var (count, start) = (0, index)
    for segment in segments.indices {
      let end = range(of: segment).upperBound
      guard end > start else { continue }
      count += segments[segment].isConcurrent ? 1 : end - start
      start = end
    }
    return count
  }
}
