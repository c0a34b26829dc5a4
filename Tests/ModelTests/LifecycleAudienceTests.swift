// SPDX-License-Identifier: Apache-2.0
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
    for (number, segment) in audience.segments.enumerated() {
      let range = audience.range(of: number)
      guard range.lowerBound == start, !range.isEmpty, !segment.isConcurrent || range.count > 1
      else { return false }
      start = range.upperBound
    }
    guard start == audience.members.count, audience.groupCount(from: start) == 0 else {
      return false
    }
    // From the first of each group, as a delivery asks.
    var first = 0
    for (number, group) in groups.enumerated() {
      guard let segment = audience.segments.lastIndex(where: { $0.start <= first }),
        audience.segments[segment].isConcurrent == (group.count > 1),
        group.count == 1 || audience.range(of: segment) == first..<first + group.count,
        audience.groupCount(from: first) == groups.count - number
      else { return false }
      first += group.count
    }
    return true
  }
}

extension LifecycleAudience {
  /// As lists.
  var groups: [[Member]] {
    segments.indices.flatMap { segment in
      let part = members[range(of: segment)]
      return segments[segment].isConcurrent ? [Array(part)] : part.map { [$0] }
    }
  }
}

extension LifecycleAudience {
  fileprivate var segments: [Segment] { (0..<segmentCount).map { segment($0) } }
}
