// SPDX-License-Identifier: Apache-2.0
// Must not compile: capture of 'group' with non-Sendable type
import DaemonLifecycle

/// A wait is a task of its own, which may not add tasks to a group of the one that waits.
func serve(_ round: WorkRound) async throws {
  try await withThrowingDiscardingTaskGroup { group in
    _ = try await round.untilEnding { () -> Int? in
      group.addTask {}
      return nil
    }
  }
}
