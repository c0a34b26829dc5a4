// SPDX-License-Identifier: Apache-2.0

/// What a mock has around its core: the record of what goes in and out, the launch at the test's first event, and tests that
/// wait.
///
/// The record is called without a lock of the core, on any thread; `didFinish` and `willDeliver` in the order of the facts.
package protocol LifecycleHarness: AnyObject, Sendable {
  /// A method was called, such as `holdDeliveries()`.
  func didCall(_ call: String)
  func willDeliver(_ notification: any LifecycleNotification)
  func didFinish(_ report: LifecycleReport)

  /// The state that the mock shows until its test asks for something.
  var initialState: LifecycleState? { get }
  /// Launches the mock, unless it was.
  func endSetUp(of core: LifecycleCore)
  /// Keeps an input that is to be taken after the launch under way. Returns whether it does.
  func delays(_ input: DelayedInput) -> Bool
  /// Returns what was kept, once the launch has ended. Called under the core's lock, as a critical section ends.
  func inputs(isIdle: Bool) -> [DelayedInput]
  /// Returns the waits that end with a critical section, under the core's lock.
  func waits(isIdle: Bool, sleeping: Int) -> [Sleeper]
}

/// An input that a harness keeps.
package struct DelayedInput: Sendable {
  fileprivate let input: LifecycleMachine.Input

  package var isPost: Bool { if case .post = input { true } else { false } }
}

extension LifecycleCore {
  /// Whether an input waits for the launch of a mock, which it begins.
  ///
  /// A hook's own is the daemon's, and so is that of work in the foreground; a check of health is beside all others.
  func isDelayed(
    _ input: LifecycleMachine.Input, by harness: any LifecycleHarness
  ) -> Bool {
    harness.endSetUp(of: self)
    if HookCall.current?.core === self || ForegroundRound.current?.clock?.keeper === self {
      return false
    }
    if case .event(let event) = input, case .checkHealth = event.request { return false }
    return harness.delays(DelayedInput(input: input))
  }

  /// Launches a mock where its harness finds, under the lock, that it is to be launched.
  package func launch(if isDue: () -> Bool) {
    change { state, now in if isDue() { state.handle(.launch { _ in }, at: now) } }
  }

  /// A critical section ends.
  func ended(_ state: inout State, _ harness: any LifecycleHarness) {
    for delayed in harness.inputs(isIdle: state.machine.isIdle) {
      state.handle(delayed.input, at: now)
    }
    let isIdle = state.machine.isIdle && state.effects.messages.isEmpty && !state.isSending
    let waits = harness.waits(isIdle: isIdle, sleeping: state.sleeperCount)
    for wait in waits { state.effects.messages.append(.reached(wait)) }
  }
}
