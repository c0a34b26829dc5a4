import Foundation
import XCTest

@testable import Pollerd

final class StateFileTests: XCTestCase {
  private var directory: TemporaryDirectory!
  private let old = PollState(count: 7, lastValue: "seven")
  private let new = PollState(count: 8, lastValue: "eight")

  override func setUpWithError() throws { directory = try TemporaryDirectory() }
  override func tearDown() { directory = nil }

  private func stateFile() throws -> StateFile { try StateFile(directory: directory.path + "/s") }

  // MARK: Load

  func testWhatIsSavedIsLoaded() throws {
    let file = try stateFile()
    try file.save(old)
    try file.save(new)
    XCTAssertEqual(try stateFile().load(), new)
    XCTAssertEqual(try directory.names(in: "s"), ["state.json"])
  }

  func testWithoutAFileCountingBeginsAtZero() throws {
    let file = try stateFile()
    XCTAssertEqual(
      try file.loadOrSetAside { XCTFail("complained: \($0)") }, PollState(count: 0))
  }

  func testMissingDirectoriesAreMade() throws {
    let file = try StateFile(directory: directory.path + "/a/b/c")
    try file.save(new)
    XCTAssertEqual(try directory.names(in: "a/b/c"), ["state.json"])
  }

  func testWhatACrashLeftIsRemovedAndNothingElse() throws {
    try stateFile().save(old)
    try directory.write("{", to: "s/.state.json.1234")
    try directory.write("mine", to: "s/notes")
    XCTAssertEqual(try stateFile().load(), old)
    XCTAssertEqual(try directory.names(in: "s"), ["notes", "state.json"])
  }

  func testABadFileIsKeptAside() throws {
    for text in [
      "", "{\"count\":", "{\"count\":-1}", "{\"count\":9223372036854775807}", "\0\u{ff}",
    ] {
      let file = try stateFile()
      try directory.write(text, to: "s/state.json")
      var complaints: [String] = []
      XCTAssertEqual(try file.loadOrSetAside { complaints.append($0) }, PollState())
      XCTAssertEqual(
        complaints,
        [
          "The state in \(file.path) is corrupt. It is kept as \(file.asidePath); "
            + "counting begins at 0."
        ])
      XCTAssertEqual(try String(contentsOfFile: file.asidePath, encoding: .utf8), text)
      XCTAssertEqual(try directory.names(in: "s"), ["state.json.bad"])
    }
  }

  func testAFileThatCannotBeReadIsKeptAside() throws {
    let file = try stateFile()
    // A directory, since no permission keeps root from reading.
    try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: false)
    var complaints: [String] = []
    XCTAssertEqual(try file.loadOrSetAside { complaints.append($0) }, PollState())
    XCTAssertEqual(complaints.count, 1)
    XCTAssertTrue(
      complaints[0].hasPrefix("Could not read \(file.path): Is a directory."), complaints[0])
    try file.save(new)
    XCTAssertEqual(try file.load(), new)
  }

  func testABadFileThatCannotBeKeptIsAnError() throws {
    let file = try stateFile()
    try directory.write("{", to: "s/state.json")
    try FileManager.default.createDirectory(
      atPath: file.asidePath, withIntermediateDirectories: false)
    XCTAssertThrowsError(try file.loadOrSetAside { XCTFail("complained: \($0)") }) {
      XCTAssertTrue("\($0)".hasPrefix("Could not put the bad state \(file.path) aside"), "\($0)")
    }
    XCTAssertEqual(try String(contentsOfFile: file.path, encoding: .utf8), "{")
  }

  func testADirectoryThatIsAFileIsAnError() throws {
    let path = try directory.write("", to: "s")
    XCTAssertThrowsError(try stateFile()) {
      XCTAssertEqual("\($0)", "Could not keep the state in \(path): Not a directory.")
    }
  }

  // MARK: Failing saves

  func testASaveWithoutItsDirectoryFails() throws {
    let file = try stateFile()
    try file.save(old)
    try FileManager.default.moveItem(atPath: file.directory, toPath: directory.path + "/away")
    XCTAssertThrowsError(try file.save(new)) {
      XCTAssertEqual(
        "\($0)", "Could not save the state in \(file.directory): No such file or directory.")
    }
    try directory.write("", to: "s")
    XCTAssertThrowsError(try file.save(new)) {
      XCTAssertEqual("\($0)", "Could not save the state in \(file.directory): Not a directory.")
    }
    XCTAssertEqual(try StateFile(directory: directory.path + "/away").load(), old)
  }

  func testASaveWithoutSpaceLeavesTheOldStateAndNoTemporary() throws {
    let file = try stateFile()
    try file.save(old)
    try withFileSizeLimit(10) {
      XCTAssertThrowsError(try file.save(new)) {
        XCTAssertEqual("\($0)", "Could not save the state in \(file.directory): File too large.")
      }
    }
    XCTAssertEqual(try file.load(), old)
    XCTAssertEqual(try directory.names(in: "s"), ["state.json"])
  }

  func testASaveThatCannotReplaceTheOldFileRemovesItsTemporary() throws {
    let file = try stateFile()
    try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: false)
    XCTAssertThrowsError(try file.save(new)) {
      XCTAssertEqual("\($0)", "Could not replace \(file.path): Is a directory.")
    }
    XCTAssertEqual(try directory.names(in: "s"), ["state.json"])
  }

  /// The nearest thing to a full disk that needs no privilege.
  private func withFileSizeLimit(_ bytes: UInt, _ body: () throws -> Void) throws {
    let handler = signal(SIGXFSZ, SIG_IGN)
    var before = rlimit()
    getrlimit(__rlimit_resource_t(1), &before)
    var limit = before
    limit.rlim_cur = bytes
    XCTAssertEqual(setrlimit(__rlimit_resource_t(1), &limit), 0)
    defer {
      setrlimit(__rlimit_resource_t(1), &before)
      signal(SIGXFSZ, handler)
    }
    try body()
  }
}
