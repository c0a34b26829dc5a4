// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// An error with a priority in the journal. A failed hook whose error does not conform has the priority `err`.
///
/// ```swift
/// struct LedgerIsCorrupt: PrioritizedError { var journalPriority: JournalPriority { .critical } }
/// ```
public protocol PrioritizedError: Error {
  /// The priority of the line that names the failed hook.
  var journalPriority: JournalPriority { get }
}
