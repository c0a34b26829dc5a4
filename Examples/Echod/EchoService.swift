// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// The daemon's hooks, which drive its server.
///
/// An actor, so that hooks never overlap.
actor EchoService {
  private let lifecycle: any LifecycleObservable
  private let options: Options
  /// From the launch until the end has begun.
  private var loop: Loop?

  init(_ lifecycle: any LifecycleObservable, _ options: Options) {
    self.lifecycle = lifecycle
    self.options = options
    lifecycle.addObserver(self)
  }
}

// MARK: - Launch and reload

extension EchoService: LaunchObserver, ReloadObserver {
  /// An error ends the daemon before it is ready, and before a client is served.
  func didFinishLaunching(_ notification: DidFinishLaunching) throws {
    let settings = try Settings.load(options.configFile)
    let restored = try Restored(lifecycle, listenAt: options.listen)
    let addresses = restored.listeners.map(Sockets.address).joined(separator: " ")
    let count = restored.connections.count
    loop = try Loop(restored, settings, lifecycle.preservation())
    say("serving \(addresses), \(count) connections go on")
  }

  func shouldReload(_ notification: ShouldReload) async throws {
    await loop?.apply(try Settings.load(options.configFile))
  }
}

// MARK: - Pause and resume

extension EchoService: ForegroundObserver, BackgroundObserver {
  func willEnterForeground(_ notification: WillEnterForeground) async {
    await loop?.enter(.serving)
  }

  /// An operator's pause drains, for as long as a hook may take. For any other reason, such as the stop, connections
  /// stay.
  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    guard let loop else { return }
    await loop.enter(.quiet)
    guard notification.cause.signal == .sigusr1 else { return }
    say("draining \(await loop.count) connections")
    // With time left to say who was late.
    await loop.letAllLeave(
      .whenIdle, within: notification.context.timeRemaining - .milliseconds(500))
    // Connections that are left are cut off, unless systemd has begun to end this run: `willTerminate` handles that.
    if await lifecycle.unitJob() == nil { try check(late: await loop.cutOff()) }
  }
}

// MARK: - Health

extension EchoService: HealthObserver {
  /// If the loop hangs this does not return in time, and the watchdog's ping is not sent.
  func checkHealth(_ notification: CheckHealth) async { _ = await loop?.count }
}

// MARK: - The end

extension EchoService: TerminationObserver {
  /// A restart hands over, a stop finishes. When systemd did not request the end, or the reason is unknown, there may
  /// be a next run or not: input is answered, and what is left is handed over, which loses nothing either way.
  func willTerminate(_ notification: WillTerminate) async throws {
    guard let loop else { return }
    self.loop = nil
    let job = await lifecycle.unitJob()
    if try lifecycle.preservation().limit > 0, job?.isRestart ?? true,
      let late = await loop.handOver(answersFirst: job == nil)
    {
      return try check(late: late)
    }
    await loop.acceptTheLast()
    let count = await loop.count
    await loop.letAllLeave(.soon(within: notification.context.timeRemaining))
    let late = await loop.cutOff()
    say("finished \(count - late) connections")
    try check(late: late)
  }

  /// The lifecycle logs the error.
  private func check(late: Int) throws(SystemError) {
    guard late > 0 else { return }
    throw SystemError("end \(late) connections in order", code: ETIMEDOUT)
  }
}
