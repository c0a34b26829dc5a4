// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// A timer that makes its client try again on the listening thread, after 10 ms at first and then at longer intervals,
/// until it succeeds.
///
/// Its timerfd is opened at the start, so that a process without descriptors or threads can try again too. While
/// nothing is to be tried, it is not set.
final class RetryTimer: LifecycleSource {
  /// The client that tries again. It is called on the listening thread, without a lock of the timer, and must not
  /// block.
  protocol Client: AnyObject, Sendable {
    /// Tries again. Returns whether nothing is left to be tried.
    func tryAgain() -> Bool
  }

  private struct State {
    var timer: Int32 = -1
    var delay: Duration
    var isArmed = false
  }

  /// Set once, by its owner, before anything can begin.
  nonisolated(unsafe) weak var client: (any Client)?
  private let first: Duration
  private let longest: Duration
  private let state: Mutex<State>

  init(first: Duration = .milliseconds(10), longest: Duration) {
    self.first = first
    self.longest = longest
    state = Mutex(State(delay: first))
  }

  deinit { close() }

  /// Makes the client try again, once the timer is open.
  func begin() { state.withLock { if $0.timer >= 0, !$0.isArmed { arm(&$0) } } }

  private func arm(_ state: inout State) {
    state.isArmed = true
    clinux_set_timer(state.timer, state.delay.saturatedNanoseconds, false)
  }

  // MARK: As a source

  var descriptors: [PolledDescriptor] {
    state.withLock { $0.timer < 0 ? [] : [PolledDescriptor(number: $0.timer)] }
  }

  func open() throws(LifecycleError) {
    let timer = clinux_make_timer()
    guard timer >= 0 else { throw .system("create a timer to try again", errno: clinux_errno()) }
    state.withLock { $0.timer = timer }
    // What has failed before there was a timer.
    if client?.tryAgain() == false { begin() }
  }

  func read(_: PolledDescriptor) -> [LifecycleInput] {
    let isDue = state.withLock { state in
      var expirations: UInt64 = 0
      guard state.timer >= 0, CLinux.read(state.timer, &expirations, 8) == 8 else { return false }
      // Before the client tries: what begins meanwhile must be tried again too.
      state.isArmed = false
      return true
    }
    guard isDue, let client else { return [] }
    let isDone = client.tryAgain()
    state.withLock { state in
      state.delay = isDone ? first : min(state.delay * 2, longest)
      if !isDone, !state.isArmed, state.timer >= 0 { arm(&state) }
    }
    return []
  }

  @discardableResult func close() -> [LifecycleInput] {
    let timer = state.withLock { state in
      defer {
        state.timer = -1
        state.isArmed = false
      }
      return state.timer
    }
    // Nothing else: other code of the process may have closed it, and its number be another's.
    clinux_close_timer(timer)
    return []
  }
}
