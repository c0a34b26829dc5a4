// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// An error that says how urgent it is in the journal. Others are warnings, as every failed hook.
///
/// ```swift
/// struct LedgerIsCorrupt: PrioritizedError { var journalPriority: JournalPriority { .critical } }
/// ```
public protocol PrioritizedError: Error {
  /// The priority of the line that names the failed hook.
  var journalPriority: JournalPriority { get }
}
