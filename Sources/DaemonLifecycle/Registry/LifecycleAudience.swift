// SPDX-License-Identifier: Apache-2.0
/// The members that receive a step, in order and divided into groups. The members of a group receive it at the same
/// time, the next group after them.
struct LifecycleAudience<Member: Sendable>: Sendable {
  /// Consecutive members: those of a concurrent segment receive at the same time, others one after another.
  struct Segment: Sendable {
    let start: Int
    let isConcurrent: Bool
  }

  private(set) var members: [Member] = []
  /// All segments but the last, without gaps, and none of them empty. Nearly always there is only one segment.
  private var earlier: [Segment] = []
  private var last: Segment?

  mutating func reserve(_ count: Int) { members.reserveCapacity(count) }

  /// Adds a member that receives after those that are there; or `together` with the last of them, and with all that
  /// receive together with that.
  mutating func append(_ member: Member, together isTogether: Bool = false) {
    if let last {
      if last.isConcurrent != isTogether { change(from: last) }
    } else {
      last = Segment(start: 0, isConcurrent: false)
    }
    members.append(member)
  }

  /// Begins a segment of the other kind. A concurrent one takes the last member with it, which was alone until now.
  private mutating func change(from old: Segment) {
    let start = members.count - (old.isConcurrent ? 0 : 1)
    if old.start != start { earlier.append(old) }
    last = Segment(start: start, isConcurrent: !old.isConcurrent)
  }

  var segmentCount: Int { earlier.count + (last == nil ? 0 : 1) }

  /// - Precondition: `number` is less than `segmentCount`.
  func segment(_ number: Int) -> Segment { number < earlier.count ? earlier[number] : last! }

  /// Returns the range of a segment's members.
  func range(of number: Int) -> Range<Int> {
    let end = number + 1 < segmentCount ? segment(number + 1).start : members.count
    return segment(number).start..<end
  }

  /// Returns the number of groups from `index` on, which is the first of its group.
  func groupCount(from index: Int) -> Int {
    var (count, start) = (0, index)
    for number in 0..<segmentCount {
      let end = range(of: number).upperBound
      guard end > start else { continue }
      count += segment(number).isConcurrent ? 1 : end - start
      start = end
    }
    return count
  }
}
