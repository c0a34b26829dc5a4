// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

@testable import pollerd

final class SettingsTests: XCTestCase {
  private var directory: Folder!

  override func setUpWithError() throws { directory = try Folder() }
  override func tearDown() { directory = nil }

  private func load(
    _ text: String, overrides: PartialSettings = PartialSettings()
  ) throws -> Settings {
    let file = try directory.write(text, to: "config")
    return try Configuration(file: file, overrides: overrides).load()
  }

  func testDefaults() throws {
    let expected = Settings(interval: .seconds(1), source: PollSource(path: "/proc/loadavg"))
    XCTAssertEqual(try Configuration(file: nil, overrides: PartialSettings()).load(), expected)
    XCTAssertEqual(try load(""), expected)
  }

  func testTheFormat() throws {
    let text = "# a comment\r\n\n  interval=0.5  # half a second\n\tsource = /srv/x#part = 1 \n"
    XCTAssertEqual(
      try load(text),
      Settings(interval: .milliseconds(500), source: PollSource(path: "/srv/x#part = 1")))
  }

  func testTheCommandLineWins() throws {
    let overrides = PartialSettings(interval: .seconds(9))
    XCTAssertEqual(
      try load("interval = 2\nsource = /x", overrides: overrides),
      Settings(interval: .seconds(9), source: PollSource(path: "/x")))
  }

  func testABadLineIsNamedWithWhatToDo() {
    let cases = [
      ("\n\nspeed = 9", "line 3: there is no setting \"speed\", only interval and source."),
      ("interval 5", "line 1: \"interval 5\" is no setting; write key = value."),
      ("= 5", "line 1: there is no setting \"\", only interval and source."),
      (
        "source = /x\r\ninterval = never",
        "line 2: interval \"never\" is not a number of seconds from 0.001 (to a year); "
          + "write 0.5, for instance."
      ),
      (
        "source =",
        "line 1: source \"\" is no file's path; write /proc/loadavg, for instance."
      ),
    ]
    for (text, sentence) in cases {
      XCTAssertThrowsError(try load(text), text) {
        XCTAssertEqual("\($0)", "\(directory.path)/config, \(sentence)")
      }
    }
  }

  func testAMissingFileIsAnError() {
    let path = directory.path + "/none"
    XCTAssertThrowsError(
      try Configuration(file: path, overrides: PartialSettings()).load()
    ) {
      XCTAssertEqual("\($0)", "Could not read \(path): No such file or directory.")
    }
  }
}
