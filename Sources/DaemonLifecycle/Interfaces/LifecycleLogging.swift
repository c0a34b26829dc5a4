// SPDX-License-Identifier: Apache-2.0
/// What a subject logs.
///
/// The ``LifecycleReport/timeline`` of a stop is one entry of the journal, or text on standard error. The process does not
/// wait for it: if standard error is a full pipe, it is lost.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum LifecycleLogging: Sendable, Hashable {
  /// Nothing but the line of a process that is ended at a third signal, or after its exit grace.
  case off
  /// Each hook that did not complete, other problems, what an operator should know and, in the journal, each transition.
  case problems
  /// The same, the timeline of every stop and, without a journal too, each reload and each transition that a signal requests.
  case timelines
  /// The same, and each transition without a journal too: for a container's log.
  case all
}
