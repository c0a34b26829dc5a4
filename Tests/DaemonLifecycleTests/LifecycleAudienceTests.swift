import TestSupport
import Testing

@testable import DaemonLifecycle

/// The audience beside the plainest one that there can be: a list of groups.
@Suite struct LifecycleAudienceTests {
  @Test(arguments: 0..<4) func asAListOfGroups(part: UInt64) throws {
    var random = SeededGenerator(seed: part)
    for _ in 0..<2500 {
      var audience = LifecycleAudience<Int>()
      var groups: [[Int]] = []
      for member in 0..<Int.random(in: 0...12, using: &random) {
        let isTogether = Bool.random(using: &random)
        audience.append(member, together: isTogether)
        if isTogether, !groups.isEmpty {
          groups[groups.count - 1].append(member)
        } else {
          groups.append([member])
        }
      }
      guard agree(audience, groups) else {
        Issue.record("part \(part): \(audience.segments) for \(groups)")
        return
      }
    }
  }

  private func agree(_ audience: LifecycleAudience<Int>, _ groups: [[Int]]) -> Bool {
    guard audience.groups == groups, audience.members == groups.flatMap({ $0 }) else {
      return false
    }
    // Without gaps, none empty, none concurrent that has but one member.
    var start = 0
    for segment in audience.segments {
      guard segment.end > start, !segment.isConcurrent || segment.end - start > 1 else {
        return false
      }
      start = segment.end
    }
    guard start == audience.members.count, audience.segment(at: start) == nil,
      audience.groupCount(from: start) == 0
    else { return false }
    // From the first of each group, as a delivery asks.
    var first = 0
    for (number, group) in groups.enumerated() {
      guard let segment = audience.segment(at: first), segment.isConcurrent == (group.count > 1),
        group.count == 1 || segment.end == first + group.count,
        audience.groupCount(from: first) == groups.count - number
      else { return false }
      first += group.count
    }
    return true
  }
}

extension LifecycleAudience {
  /// The segment that the member at `index` is in.
  func segment(at index: Int) -> Segment? { segments.first { $0.end > index } }

  /// As lists.
  var groups: [[Member]] {
    var (groups, start): ([[Member]], Int) = ([], 0)
    for segment in segments {
      let part = members[start..<segment.end]
      groups += segment.isConcurrent ? [Array(part)] : part.map { [$0] }
      start = segment.end
    }
    return groups
  }
}
