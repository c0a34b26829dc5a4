// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Waits for a fact that nothing announces, and throws when it does not come about.
///
/// For long, by default: Swift's cooperative pool, through which many facts come, is kept busy by the other tests of a
/// whole run for half a minute, and for a whole one on a busy machine.
nonisolated(nonsending) package func eventually(
  _ what: String = "it happens", within seconds: Double = 180, file: StaticString = #filePath,
  line: UInt = #line, _ isSo: () -> Bool
) async throws {
  let deadline = now() + seconds
  while !isSo() {
    guard now() < deadline else { throw TestFailure("waited in vain until \(what)", file, line) }
    try await Task.sleep(for: .milliseconds(1))
  }
}

/// The same, blocking the thread.
package func eventually(
  _ what: String = "it happens", within seconds: Double = 100, file: StaticString = #filePath,
  line: UInt = #line, _ isSo: () throws -> Bool
) throws {
  let deadline = now() + seconds
  while try !isSo() {
    guard now() < deadline else { throw TestFailure("waited in vain until \(what)", file, line) }
    usleep(1000)
  }
}
