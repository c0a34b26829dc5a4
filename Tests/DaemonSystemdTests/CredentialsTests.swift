// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import Testing

@testable import DaemonSystemd

@Suite struct CredentialsTests {
  private func withDirectory(_ body: (Credentials, String) throws -> Void) throws {
    let path = NSTemporaryDirectory() + "credentials-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    try body(try Credentials(ServiceEnvironment(["CREDENTIALS_DIRECTORY": path])), path)
  }

  @Test func theyAreReadByName() throws {
    try withDirectory { credentials, path in
      try Data([0xff, 0]).write(to: URL(fileURLWithPath: path + "/key"))
      try Data("s3cret\n".utf8).write(to: URL(fileURLWithPath: path + "/api-token"))
      #expect(try credentials.names == ["api-token", "key"])
      #expect(try credentials.data(named: "key") == [0xff, 0])
      #expect(try credentials.string(named: "api-token") == "s3cret\n")
      #expect(try credentials.string(named: "absent") == nil)
      #expect(throws: SystemdError.self) { try credentials.string(named: "key") }
    }
  }

  @Test func namesDoNotLeaveTheDirectory() throws {
    try withDirectory { credentials, _ in
      for name in [
        "", ".", "..", "../x", "a/b", "a:b", "a\n", "ä", String(repeating: "x", count: 256),
      ] {
        #expect(throws: SystemdError.self) { try credentials.data(named: name) }
      }
    }
  }

  @Test func whatIsNoCredentialIsAnError() throws {
    try withDirectory { credentials, path in
      mkfifo(path + "/fifo", 0o600)
      mkdir(path + "/directory", 0o700)
      let big = [UInt8](repeating: 1, count: 1_048_576)
      try Data(big).write(to: URL(fileURLWithPath: path + "/big"))
      try Data(big + [1]).write(to: URL(fileURLWithPath: path + "/huge"))
      #expect(try credentials.data(named: "big") == big)
      for name in ["fifo", "directory", "huge"] {
        #expect(throws: SystemdError.self) { try credentials.data(named: name) }
      }
    }
  }

  @Test func withoutADirectoryThereAreNone() throws {
    let none = Credentials(directory: nil)
    #expect(try none.names.isEmpty)
    #expect(try none.data(named: "x") == nil)
    #expect(throws: SystemdError.self) { try Credentials(directory: "/nowhere/at/all").names }
  }
}
