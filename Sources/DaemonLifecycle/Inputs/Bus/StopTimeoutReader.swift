// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The reader of the time that systemd allows for a stop of this service.
///
/// It repeats the query until systemd has replied, since without the reply a stop may end in SIGKILL before state is
/// saved; and after a re-execution of systemd, which reads the unit again.
final class StopTimeoutReader: BusFollower {
  private struct State {
    var isKnown = false
    /// When the first question that was not answered was asked; `nil` once one is.
    var askingSince: MonotonicTime?
  }

  private let state = Mutex(State())
  /// The length of a restart of systemd that is not worth a line in the log.
  private static let patience = Duration.seconds(2)

  func begin(on session: BusSession, _ inbox: BusInbox) {
    session.follow(.stopTimeout) { [weak self] in
      self?.willAsk()
      return true
    } _: { [weak self] answer in
      self?.take(answer, inbox)
      return (try? answer.get()) != nil
    }
  }

  private func willAsk() {
    let now = MonotonicTime.now()
    state.withLock { $0.askingSince = $0.askingSince ?? now }
  }

  private func take(_ answer: Result<BusAnswer, BusError>, _ inbox: BusInbox) {
    switch answer {
    case .success(let answer):
      state.withLock { ($0.isKnown, $0.askingSince) = (true, nil) }
      inbox.put(.stopTimeout(answer.duration ?? .seconds(Int64.max)))
      inbox.settle(Self.matter)
    case .failure(let error):
      let now = MonotonicTime.now()
      let since = state.withLock(\.askingSince) ?? now
      if error.isAbsence || since.duration(to: now) >= Self.patience { report(error, inbox) }
    }
  }

  /// Once it is known, it stays so without a bus.
  private func report(_ error: BusError, _ inbox: BusInbox) {
    if !state.withLock(\.isKnown) { inbox.warn(error, without: Self.matter) }
  }

  private static let matter = "TimeoutStopSec="
}
