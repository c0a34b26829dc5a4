// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

@testable import echod

@Suite struct SocketsTests {
  @Test(arguments: [
    "nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65537", "127.0.0.1:-1",
    "localhost:7777", "[::1:80]:70000",
  ])
  func whatIsNoAddressIsRefused(_ address: String) {
    #expect(throws: SystemError.self) { try Sockets.listener(at: address) }
  }

  @Test func aSocketThatIsListenedOnStaysAndALeftOverGoes() throws {
    let path = shortTemporaryFolder + "echod-\(UUID().uuidString).sock"
    defer { unlink(path) }
    let first = try Sockets.listener(at: path)
    let error = #expect(throws: SystemError.self) { try Sockets.listener(at: path) }
    #expect(error?.code == EADDRINUSE)
    close(first)
    // A child that another test has just forked listens too, until its exec.
    try eventually("the left-over goes", within: 60) {
      (try? Sockets.listener(at: path)).map { close($0) } != nil
    }
  }

  @Test func aFileInTheWayStays() throws {
    let path = shortTemporaryFolder + "echod-\(UUID().uuidString)"
    defer { unlink(path) }
    try Data("mine".utf8).write(to: URL(filePath: path))
    #expect(throws: SystemError.self) { try Sockets.listener(at: path) }
    #expect(try Data(contentsOf: URL(filePath: path)) == Data("mine".utf8))
  }
}
