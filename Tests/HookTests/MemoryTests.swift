// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// What a daemon does for months takes no memory: posts, observers that come and go, pauses and resumes.
///
/// Each six times: in the first round memory is taken that the others use again. On a busy machine more threads take
/// some, and what is no longer needed is given up later, in one round or another; what grows is there in each.
/// MEMORY_COUNT says how many of each; CI does 100,000.
final class MemoryTests: XCTestCase {
  func testNothingGrowsWithWhatHasHappened() throws {
    let count =
      ProcessInfo.processInfo.environment["MEMORY_COUNT"].flatMap { Int($0) }
      ?? LongTests.count(3000, long: 20_000)
    let daemon = try ChildProcess(built("ProbeDaemon"), ["memory", "\(count)"])
    XCTAssertEqual(try daemon.wait(within: 600), .status(0))
    for what in ["posts", "observers", "toggles"] {
      let allocated = daemon.output.filter { $0.hasPrefix(what) }
        .compactMap { Int($0.split(separator: " ")[1]) }
      XCTAssertEqual(allocated.count, 6, "\(daemon.output)")
      guard allocated.count == 6 else { continue }
      print("allocated after \(what), six times \(count): \(allocated) kB")
      // Two rounds apart at least.
      XCTAssertLessThan(
        allocated[3...].min()! - allocated[1...2].min()!, 900, "\(what): \(allocated)")
    }
  }
}
