// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleState
import Foundation
import TestSupport
import XCTest

@testable import pollerd

/// What of the state is Pollerd's own; the store has tests of its own.
final class PollStateTests: XCTestCase {
  private var directory: Folder!

  override func setUpWithError() throws { directory = try Folder() }
  override func tearDown() { directory = nil }

  private func store() throws -> PollStore { try PollStore(directory: directory.path + "/s") }

  func testMissingDirectoriesAreMadeButNotInAFile() throws {
    XCTAssertNil(try PollStore(directory: directory.path + "/a/b/c").load())
    let path = try directory.write("", to: "s")
    XCTAssertThrowsError(try store()) {
      XCTAssertEqual($0 as? StateError, .unusable("\(path) is not a directory: name another."))
    }
    XCTAssertThrowsError(try PollStore(directory: path + "/below")) {
      XCTAssertEqual("\($0)", "Could not create \(path)/below: Not a directory.")
    }
  }

  func testWhatIsNoStateIsKeptAside() throws {
    let texts = [
      "", "{", "{\"count\":-1}", "{\"count\":9223372036854775807}", "{\"lastValue\":\"x\"}",
      "\0\u{ff}",
    ]
    _ = try store()
    for (number, text) in texts.enumerated() {
      try StateStore(directory: directory.path + "/s").save(Array(text.utf8))
      let store = try store()
      var warnings: [String] = []
      XCTAssertNil(try store.loadOrSetAside { warnings.append($0) })
      XCTAssertEqual(warnings.count, 1, text)
      let aside = number == 0 ? "state.0.bad" : "state.0.bad.\(number + 1)"
      XCTAssertTrue(
        warnings[0].hasSuffix("It is kept as \(store.store.directory)/\(aside)."), warnings[0])
      let kept = try XCTUnwrap(FileManager.default.contents(atPath: directory.path + "/s/" + aside))
      XCTAssertEqual(Array(kept.dropFirst(40)), Array(text.utf8))
    }
  }
}
