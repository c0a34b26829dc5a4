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

  func testWhatWasNeverSavedIsRefused() {
    for text in [
      "", "{", "{\"count\":-1}", "{\"count\":9223372036854775807}", "{\"lastValue\":\"x\"}",
      "\0\u{ff}",
    ] {
      XCTAssertThrowsError(try JSONDecoder().decode(PollState.self, from: Data(text.utf8)), text)
    }
  }
}
