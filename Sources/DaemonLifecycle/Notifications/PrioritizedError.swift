// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// An error that says how urgent it is in the journal. Others have the priority `err`, as every failed hook.
///
///     struct LedgerIsCorrupt: PrioritizedError { var journalPriority: JournalPriority { .critical } }
public protocol PrioritizedError: Error {
  /// The priority of the line that names the failed hook.
  var journalPriority: JournalPriority { get }
}
