// SPDX-License-Identifier: Apache-2.0
/// What a subject logs. Minor versions may add cases.
///
/// The ``LifecycleReport/timeline`` of a stop is one entry of the journal, or text on standard error. The process does
/// not wait for that: if standard error is a full pipe, the timeline is lost.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum LifecycleLogging: Sendable, Hashable {
  /// Only the last line of a process that a third signal, the exit grace or a lost lease ends.
  case off
  /// Problems, such as a hook that did not complete, news for operators and, in the journal, each transition.
  case problems
  /// The same, the timeline of every stop and, even without a journal, each reload and each transition that a signal requests.
  case timelines
  /// The same, and each transition even without a journal: for a container's log.
  case all
}
