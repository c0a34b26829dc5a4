// SPDX-License-Identifier: Apache-2.0

/// The test's side of a mock's core: the record of calls and deliveries, the launch at the test's first event, and the
/// waits of tests.
///
/// The record is called on any thread, under no lock of the core; `didFinish` and `willDeliver` in the facts' order.
package protocol LifecycleHarness: AnyObject, Sendable {
  /// A method was called, such as `holdDeliveries()`.
  func didCall(_ call: String)
  func willDeliver(_ notification: any LifecycleNotification)
  func didFinish(_ report: LifecycleReport)

  /// The state that the mock shows until its test's first event.
  var initialState: LifecycleState? { get }
  /// Launches the mock, unless it was launched.
  func endSetUp(of core: LifecycleCore)
  /// Keeps an input for after the launch under way. Returns whether it does.
  func delays(_ input: DelayedInput) -> Bool
  /// Returns the kept inputs, once the launch has ended. Called under the core's lock, as a critical section ends.
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
  /// Whether an input waits for the launch of a mock, which this begins.
  ///
  /// Inputs of hooks and of work in the foreground are the daemon's own and don't wait; nor does a check of health.
  func isDelayed(
    _ input: LifecycleMachine.Input, by harness: any LifecycleHarness
  ) -> Bool {
    harness.endSetUp(of: self)
    if HookCall.current?.core === self || WorkRound.current?.clock?.keeper === self {
      return false
    }
    if case .event(let event) = input, case .checkHealth = event.request { return false }
    return harness.delays(DelayedInput(input: input))
  }

  /// Launches a mock if its harness finds, under the lock, that the launch is due.
  package func launch(if isDue: () -> Bool) {
    change { state, now in if isDue() { state.handle(.launch { _ in }, at: now) } }
  }

  /// Takes the kept inputs and ends waits, as a critical section ends.
  func ended(_ state: inout State, _ harness: any LifecycleHarness) {
    for delayed in harness.inputs(isIdle: state.machine.isIdle) {
      state.handle(delayed.input, at: now)
    }
    let isIdle = state.machine.isIdle && state.effects.messages.isEmpty && !state.isSending
    let waits = harness.waits(isIdle: isIdle, sleeping: state.sleeperCount)
    for wait in waits { state.effects.messages.append(.reached(wait)) }
  }
}
