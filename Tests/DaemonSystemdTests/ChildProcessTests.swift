// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Foundation
import Testing

@Suite struct ChildProcessTests {
  /// Whether SIGTERM is blocked in a child that `start` starts from a thread of Dispatch's.
  private func blocksSIGTERM(
    _ start: @escaping @Sendable (Process) throws -> Void
  ) async throws -> Bool {
    let status = try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(
          with: Result {
            let process = Process()
            let output = Pipe()
            process.executableURL = URL(filePath: "/bin/cat")
            process.arguments = ["/proc/self/status"]
            process.standardOutput = output
            try start(process)
            let text = try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return String(decoding: text, as: UTF8.self)
          })
      }
    }
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("SigBlk:\t") })
    let blocked = try #require(UInt64(line.dropFirst("SigBlk:\t".count), radix: 16))
    return blocked & 1 << (SIGTERM - 1) != 0
  }

  /// The problem, so that it is noticed should it go away one day.
  @Test func aPlainChildOfAPoolThreadStartsWithSIGTERMBlocked() async throws {
    #expect(try await blocksSIGTERM { try $0.run() })
  }

  @Test func withUnblockedSignalsNothingIsBlocked() async throws {
    let isBlocked = try await blocksSIGTERM { process in
      try ChildProcess.withUnblockedSignals { try process.run() }
    }
    #expect(!isBlocked)
    // The thread has its mask back.
    let isBlockedAfter = try await blocksSIGTERM { process in
      ChildProcess.withUnblockedSignals {}
      try process.run()
    }
    #expect(isBlockedAfter)
  }

  @Test func aChildDoesNotGetWhatIsForThisProcess() {
    var variables = Dictionary(
      uniqueKeysWithValues: ServiceEnvironment.ownVariables.map { ($0, "1") })
    variables["INVOCATION_ID"] = "i"
    variables["JOURNAL_STREAM"] = "1:2"
    variables["PATH"] = "/bin"
    let environment = ServiceEnvironment(variables)
    #expect(
      environment.childEnvironment(adding: ["PATH": "/sbin"])
        == ["INVOCATION_ID": "i", "JOURNAL_STREAM": "1:2", "PATH": "/sbin"])
  }
}
