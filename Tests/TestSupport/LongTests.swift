// SPDX-License-Identifier: Apache-2.0
import Foundation
package import Testing
import XCTest

/// Tests that take long, which are run where `LONG_TESTS` is set.
package enum LongTests {
  package static let areRequested = ProcessInfo.processInfo.environment["LONG_TESTS"] != nil
  fileprivate static let howTo = "It takes long; to run it: LONG_TESTS=1 swift test"

  /// How often a test repeats something: usually, and where long tests are requested.
  package static func count(_ usual: Int, long: Int) -> Int { areRequested ? long : usual }
}

extension Trait where Self == ConditionTrait {
  /// A test or a suite that takes long.
  package static var long: Self {
    .enabled(if: LongTests.areRequested, Comment(rawValue: LongTests.howTo))
  }
}

/// The same for XCTest: the first call in a test, or in `setUpWithError` for all tests of a class.
package func skipUnlessLong(file: StaticString = #filePath, line: UInt = #line) throws {
  try XCTSkipUnless(LongTests.areRequested, LongTests.howTo, file: file, line: line)
}
