// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// The example daemon as a process: no poll is lost, repeated or made while paused, whatever is sent.
final class PollerdProcessTests: XCTestCase {
  private var folder: Folder?
  private var stateDirectory: String { (folder?.path ?? "") + "/state" }

  override func setUpWithError() throws { folder = try Folder() }
  override func tearDown() { folder = nil }

  /// In the foreground, and at work.
  private func started() throws -> ChildProcess {
    // It would poll several times in the shortest pause; short lines, so that the pipe has room.
    let arguments = ["--state", stateDirectory, "--interval", "0.001", "--source", "/dev/null"]
    let daemon = try ChildProcess(built("pollerd"), arguments, stderrToStdout: true)
    try daemon.expect("started, pid \(daemon.pid)")
    try daemon.expect("poll ")
    return daemon
  }

  private func savedCount() throws -> Int {
    struct State: Decodable { let count: Int }
    // Past the daemon, which has the store: the generation and the bytes of both files.
    let files = ["/state.0", "/state.1"].compactMap {
      try? Data(contentsOf: URL(fileURLWithPath: stateDirectory + $0))
    }
    let newest = files.max {
      $0[16..<24].reversed().lexicographicallyPrecedes($1[16..<24].reversed())
    }
    guard let newest else { throw TestFailure("nothing is saved") }
    return try JSONDecoder().decode(State.self, from: newest.dropFirst(40)).count
  }

  /// The numbers of the polls that it has printed.
  private func polls(_ output: [String]) -> [Int] {
    output.filter { $0.hasPrefix("poll ") }.map { Int($0.split(separator: " ")[1]) ?? -1 }
  }

  /// Each save is of the poll that was printed last.
  private func checkSaves(
    _ output: [String], file: StaticString = #filePath, line: UInt = #line
  ) {
    for (index, said) in output.enumerated() where said.hasPrefix("saved: ") {
      let last = polls(Array(output[..<index])).last ?? 0
      XCTAssertEqual(said, "saved: count \(last)", file: file, line: line)
    }
  }

  // MARK: Signals

  private enum Round: CaseIterable { case pause, resume, reload, terminate, interrupt }

  /// After a signal that changes nothing, of which nothing is seen; two that are pending together would come in
  /// number order.
  private func settle(_ daemon: ChildProcess) throws {
    try daemon.waitUntilHandled()
    daemon.send(SIGHUP)
    try daemon.expect("reload: nothing to reload without --config")
  }

  /// Rounds in random order: the numbers go on as if nothing had happened.
  func testCountsThroughPausesReloadsAndRestarts() throws {
    try withSeed { random in
      var numbers: [Int] = []
      var daemon = try started()
      // The number of the last poll before the pause that it is in.
      var pausedAfter: Int?
      func checkPause() {
        if let pausedAfter { XCTAssertEqual(polls(daemon.output).last, pausedAfter) }
      }
      func end(_ signal: Int32) throws {
        // In the midst of whatever these begin.
        for _ in 0..<Int.random(in: 0...2, using: &random) {
          let other = [SIGUSR1, SIGUSR2, SIGHUP].randomElement(using: &random)!
          daemon.send(other)
          if other == SIGUSR2 { pausedAfter = nil }
        }
        daemon.send(signal)
        XCTAssertEqual(try daemon.wait(), .status(0))
        checkPause()
        checkSaves(daemon.output)
        numbers += polls(daemon.output)
        XCTAssertEqual(try savedCount(), numbers.last)
      }

      let rounds = Array(repeating: Round.allCases, count: 4).joined()
      for round in rounds.shuffled(using: &random) {
        switch round {
        case .pause:
          daemon.send(SIGUSR1)
          if pausedAfter != nil {
            try settle(daemon)
          } else {
            try daemon.expect("lifecycle: Entered the background in ")
            pausedAfter = polls(daemon.output).last
          }
          checkPause()
          XCTAssertEqual(try savedCount(), pausedAfter)
        case .resume:
          checkPause()
          daemon.send(SIGUSR2)
          if pausedAfter == nil {
            try settle(daemon)
          } else {
            try daemon.expect("lifecycle: Entered the foreground in ")
          }
          pausedAfter = nil
        case .reload:
          daemon.send(SIGHUP)
          try daemon.expect("reload: nothing to reload without --config")
          checkPause()
        case .terminate, .interrupt:
          try end(round == .terminate ? SIGTERM : SIGINT)
          daemon = try started()
          pausedAfter = nil
        }
        if pausedAfter == nil {
          for _ in 0..<Int.random(in: 0...4, using: &random) { try daemon.expect("poll ") }
        }
      }
      try end(SIGTERM)
      XCTAssertEqual(numbers, Array(1...numbers.count))
    }
  }

  // MARK: What it links

  /// It keeps values as JSON without ICU, libxml2 and libcurl, which all of Foundation would bring.
  func testOfFoundationItHasTheEssentials() throws {
    let daemon = try started()
    let libraries = daemon.mappedFiles()
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertTrue(libraries.contains { $0.hasSuffix("/libFoundationEssentials.so") })
    for name in ["Foundation.", "FoundationNetworking", "FoundationInternational", "curl", "xml2"] {
      XCTAssertFalse(libraries.contains { $0.contains("/lib\(name)") }, name)
    }
  }
}
