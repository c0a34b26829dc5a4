// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import TestLimits
import TestSupport
import XCTest

/// More clients than the example server may have descriptors.
final class EchodFloodTests: XCTestCase {
  private typealias Echod = (daemon: TestSupport.ChildProcess, address: String)

  private func started(_ manager: FakeServiceManager) throws -> Echod {
    var environment = manager.environment
    environment["WATCHDOG_USEC"] = "4000000"
    let daemon = try TestSupport.ChildProcess(
      built("echod"), ["--listen", "127.0.0.1:0"], environment: environment, stderrToStdout: true)
    let line = try daemon.expect("echod: serving ")
    _ = try manager.next(containing: "READY", timeout: .seconds(30))
    return (daemon, String(line.split(separator: " ")[2].dropLast()))
  }

  private func served(_ address: String, _ count: Int) throws -> [Peer] {
    let peers = try (0..<count).map { _ in try Peer(address) }
    for peer in peers {
      peer.send("one\n")
      XCTAssertTrue(peer.hears("one\n"))
    }
    return peers
  }

  /// Until nobody else is accepted.
  private func flood(_ echod: Echod) throws -> [Peer] {
    let peers = try (0..<400).map { _ in try Peer(echod.address) }
    try echod.daemon.line { $0.contains("new clients wait") }
    return peers
  }

  func testTheLastSaveHasItsDescriptors() throws {
    let manager = try FakeServiceManager(descriptorStoreLimit: 64)
    let echod = try started(manager)
    XCTAssertEqual(limits_set_soft(echod.daemon.pid, Int32(RLIMIT_NOFILE.rawValue), 128), 0)
    let early = try served(echod.address, 10)
    for peer in early { peer.send("half a") }
    let crowd = try flood(echod)
    echod.daemon.send(SIGTERM)
    XCTAssertEqual(try echod.daemon.wait(), .status(0))
    let names = manager.storedDescriptors.map(\.name)
    XCTAssertTrue(names.contains("state") && (1...10).allSatisfy { names.contains("c\($0)") })
    XCTAssertEqual(manager.violations, [])
    let state = try manager.storedDuplicates().takeFirst { $0.name == "state" }?.memoryBytes()
    let half = Data("half a".utf8).base64EncodedString()
    let text = String(decoding: try XCTUnwrap(state), as: UTF8.self)
    XCTAssertEqual(text.split(separator: half, omittingEmptySubsequences: false).count, 11, text)
    withExtendedLifetime(crowd) {}
  }
}
