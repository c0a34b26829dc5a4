// SPDX-License-Identifier: Apache-2.0
import Foundation

/// What a command has said and how it has ended.
struct Output: Sendable {
  var status: Int32
  var stdout: String
  var stderr: String
  /// The standard output without white space around it.
  var text: String { stdout.trimmingCharacters(in: .whitespacesAndNewlines) }
}

struct MachineFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Runs what blocks on a thread of its own, so that tests waiting for facts leave Swift's threads free.
func offPool<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result(catching: work)) }
    thread.start()
  }
}
