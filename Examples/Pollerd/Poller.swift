// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable

/// Reads its source again and again while the daemon is in the foreground, and numbers what it reads.
///
/// The promise: every number is printed once, in order, through pauses and restarts, and after a save the
/// store has the number printed last. It holds because being an actor makes a number and its line one step
/// (`finishPoll`), and because printing never waits, so that no hook waits for a reader of our output.
actor Poller {
  typealias Read = @Sendable (PollSource) async throws -> String

  private var state: PollState
  private var settings: Settings
  /// From WillEnterForeground until DidEnterBackground; a poll that comes late is dropped, uncounted.
  private var isAtWork = false
  /// The wait between two polls.
  private var nap: Task<Void, Never>?
  /// When the last poll ended, or the work began.
  private var lastSign: LifecycleClock.Instant

  private let store: PollStore
  private let configuration: Configuration
  private let console: any LineOutput
  private let clock: LifecycleClock
  private let read: Read

  init(
    lifecycle: any LifecycleObservable, state: PollState, store: PollStore, settings: Settings,
    configuration: Configuration, console: any LineOutput,
    read: @escaping Read = { try $0.read() }
  ) {
    self.state = state
    self.settings = settings
    self.store = store
    self.configuration = configuration
    self.console = console
    self.read = read
    clock = lifecycle.clock
    lastSign = clock.now
    lifecycle.addObserver(self)
  }

  // MARK: Work

  /// Polls until the task is cancelled. Not over `ticks`, since a reload may change the interval.
  func poll() async throws {
    while true {
      let began = clock.now
      let reading: Result<String, any Error>
      do { reading = .success(try await read(settings.source)) } catch { reading = .failure(error) }
      try await finishPoll(reading)
      lastSign = clock.now
      try await sleepUntilNextPoll(after: began)
    }
  }

  /// Prints and counts: both, with no await between, or, when paused before, neither.
  private func finishPoll(_ reading: Result<String, any Error>) async throws {
    let number = state.count + 1
    let text =
      switch reading {
      case .success(let value): value.isEmpty ? "" : " \(value)"
      case .failure(let error): " failed: \(error)"
      }
    while true {
      // A poll that the pause has cut off has read nothing but its own cancellation.
      try Task.checkCancellation()
      guard isAtWork else { return }
      lastSign = clock.now
      if console.printIfRoom("poll \(number)\(text)") { break }
      try await clock.sleep(for: .milliseconds(50))
    }
    state.count = number
    if case .success(let value) = reading { state.lastValue = value }
  }

  private func sleepUntilNextPoll(after began: LifecycleClock.Instant) async throws {
    // A reload ends the nap early, and may have moved the time of the next poll.
    while case let next = began.advanced(by: settings.interval), clock.now < next {
      let nap = Task { [clock] in _ = try? await clock.sleep(until: next) }
      self.nap = nap
      await withTaskCancellationHandler {
        await nap.value
      } onCancel: {
        nap.cancel()
      }
      try Task.checkCancellation()
    }
  }
}

// MARK: - Pause and resume

extension Poller: LaunchObserver, ForegroundObserver, BackgroundObserver {
  func didFinishLaunching(_ notification: DidFinishLaunching) {
    console.print("started, pid \(getpid())")
  }

  /// Called before `foreground` begins its round.
  func willEnterForeground(_ notification: WillEnterForeground) {
    isAtWork = true
    lastSign = clock.now
  }

  /// Called after `foreground` has ended its round, or abandoned it.
  func didEnterBackground(_ notification: DidEnterBackground) { isAtWork = false }
}

// MARK: - Health

extension Poller: HealthObserver {
  /// A source that hangs for good should cost the watchdog's ping, since a restart may help. One that fails is
  /// healthy, and so is an output without a reader.
  func checkHealth(_ notification: CheckHealth) throws {
    let limit = settings.interval + .seconds(60)
    let silence = lastSign.duration(to: clock.now)
    if isAtWork, silence > limit { throw Hung(seconds: silence.components.seconds) }
  }

  struct Hung: Error, CustomStringConvertible {
    let seconds: Int64
    var description: String { "no poll has ended for \(seconds) s" }
  }
}

// MARK: - Save, reload

extension Poller: SaveObserver, ReloadObserver {
  /// The lifecycle logs the cause, and an error.
  func shouldSaveState(_ notification: ShouldSaveState) throws {
    try store.saveIfChanged(state)
    console.print("saved: count \(state.count)")
  }

  func shouldReload(_ notification: ShouldReload) throws {
    guard configuration.file != nil else {
      return console.print("reload: nothing to reload without --config")
    }
    settings = try configuration.load()
    console.print("settings: interval \(settings.interval), source \(settings.source.path)")
    // The wait so far was for the former interval.
    lastSign = clock.now
    nap?.cancel()
  }
}
