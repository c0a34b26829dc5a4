// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// A daemon that says that it works, works: as a process, with real signals and a real file.
final class WorkProcessTests: XCTestCase {
  private var folder = ""

  override func setUpWithError() throws {
    folder = NSTemporaryDirectory() + "works-\(UUID())"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

  /// Puts another version in place, as a ConfigMap does: the file is a link through a link, which is replaced at once.
  private func publish(_ version: Int) throws {
    let files = FileManager.default
    try files.createDirectory(atPath: folder + "/v\(version)", withIntermediateDirectories: true)
    try "\(version)".write(toFile: folder + "/v\(version)/conf", atomically: false, encoding: .utf8)
    try files.createSymbolicLink(atPath: folder + "/next", withDestinationPath: "v\(version)")
    XCTAssertEqual(rename(folder + "/next", folder + "/..data"), 0)
    if version == 0 {
      try files.createSymbolicLink(atPath: folder + "/conf", withDestinationPath: "..data/conf")
    }
  }

  private func started() throws -> ChildProcess {
    try publish(0)
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["works", folder + "/conf"], stderrToStdout: true)
    try daemon.expect("migrated")
    try daemon.expect("beat in foreground, ready: true")
    return daemon
  }

  private func stop(_ daemon: ChildProcess) throws {
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let lines = daemon.output
    let end = try XCTUnwrap(lines.firstIndex { $0.contains("heartbeats end") })
    let save = try XCTUnwrap(lines.lastIndex { $0.hasPrefix("save: ") })
    XCTAssertLessThan(end, save)
  }

  func testWhatGoesOnInAPauseDoesAndWhatHasEndedIsSaid() throws {
    let daemon = try started()
    daemon.send(SIGUSR1)
    try daemon.expect("beat in background, ready: false")
    daemon.send(SIGUSR2)
    try daemon.expect(
      "lifecycle: consumer has ended by itself. It is run again after the next resume.")
    try daemon.expect("beat in foreground, ready: true")
    try stop(daemon)
    XCTAssertFalse(daemon.output.contains { $0.contains("migration has ended by itself") })
  }

  func testWhatFailsIsMissedAndWhatStallsIsSaid() throws {
    let daemon = try started()
    daemon.send(SIGHUP)
    try daemon.expect("lifecycle: server restarts in ")
    try daemon.expect("lifecycle: Not ready without server.")
    try daemon.expect("beat in foreground, ready: false")
    try daemon.expect("beat in foreground, ready: true")
    try daemon.expect("lifecycle: worker has made no progress for 2 s: the daemon is not healthy.")
    try daemon.expect("beat in foreground, ready: true, not healthy")
    daemon.send(SIGHUP)
    try daemon.expect("lifecycle: worker makes progress again.")
    try stop(daemon)
  }

  func testWhatIsNotReadyForAWhileGoesOn() throws {
    let (daemon, files) = (try started(), FileManager.default)
    XCTAssertTrue(files.fileExists(atPath: folder + "/conf.ready"))
    XCTAssertTrue(files.createFile(atPath: folder + "/conf.down", contents: nil))
    try daemon.expect("lifecycle: Not ready without worker (the database is down).")
    try daemon.expect("beat in foreground, ready: false")
    XCTAssertFalse(files.fileExists(atPath: folder + "/conf.ready"))
    try files.removeItem(atPath: folder + "/conf.down")
    try daemon.expect("lifecycle: Ready again.")
    try daemon.expect("beat in foreground, ready: true")
    XCTAssertTrue(files.fileExists(atPath: folder + "/conf.ready"))
    try stop(daemon)
  }

  /// Three swaps in a row are one reload, in a pause too.
  func testAChangedFileIsReloadedOnceItIsQuiet() throws {
    let daemon = try started()
    daemon.send(SIGUSR1)
    try daemon.expect("beat in background, ready: false")
    for version in 1...3 { try publish(version) }
    try daemon.expect("reload: a change of \(folder)/conf")
    try FileManager.default.removeItem(atPath: folder + "/conf")
    try daemon.expect("reload: a change of \(folder)/conf")
    try stop(daemon)
    XCTAssertEqual(daemon.output.count { $0.hasPrefix("reload: ") }, 2)
  }
}
