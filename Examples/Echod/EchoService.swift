import DaemonLifecycle
import DaemonSystemd

/// What the lifecycle asks of the daemon, said to its server.
///
/// An actor, so that hooks and their waiting never overlap.
actor EchoService {
  private let lifecycle: any LifecycleObservable
  private let options: Options
  private var server: Server?
  private var limit = 0
  /// Where it listens, once it does.
  private(set) var addresses: [String] = []

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
    addresses = restored.listeners.map(Sockets.address)
    limit = try lifecycle.preservation.limit
    server = try Server(restored, settings, lifecycle.preservation)
    say(
      "serving \(addresses.joined(separator: " ")), \(restored.connections.count) connections go on"
    )
  }

  func shouldReload(_ notification: ShouldReload) throws {
    server?.apply(try Settings.load(options.configFile))
  }
}

// MARK: - Pause and resume

extension EchoService: ForegroundObserver, BackgroundObserver {
  func willEnterForeground(_ notification: WillEnterForeground) { server?.serve() }

  /// An operator's pause drains. What else leads to the background, the end among it, needs connections to stay.
  func didEnterBackground(_ notification: DidEnterBackground) async {
    guard notification.cause.signal == .sigusr1 else {
      server?.stopAccepting()
      return
    }
    let count = await server?.drain() ?? 0
    say("draining \(count) connections")
  }
}

// MARK: - Health

extension EchoService: HealthObserver {
  /// The loop turns, or this does not return in time, and the watchdog's ping is not sent.
  func checkHealth(_ notification: CheckHealth) async { _ = await server?.count() }
}

// MARK: - The end

extension EchoService: TerminationObserver {
  /// A restart hands over, a stop finishes. When systemd did not ask for the end, or does not say why, there may be a
  /// next run or not: what has come is answered, and what is left is handed over, which loses nothing either way.
  func willTerminate(_ notification: WillTerminate) async throws {
    guard let server else { return }
    let job = await lifecycle.unitJob()
    if limit > 0, job?.isRestart ?? true,
      let handed = await handOver(server, answersFirst: job == nil)
    {
      return try check(handed.unkept)
    }
    // A second of the hook's time for saying so.
    let time = max(.milliseconds(100), notification.context.timeRemaining - .seconds(1))
    let ending = await server.finish(within: time)
    say("finished \(ending.finished) connections")
    try check(ending)
  }

  /// `nil` when they could not be handed over: the server goes on then.
  private func handOver(_ server: Server, answersFirst: Bool) async -> Loop.Handed? {
    do {
      let handed = try await server.handOver(answersFirst: answersFirst)
      say("handed over \(handed.connections) connections, \(handed.bytes) bytes")
      return handed
    } catch {
      say("\(error) So the connections are finished instead.")
      return nil
    }
  }

  private func check(_ ending: Loop.Ending) throws {
    if ending.cutOff > 0 { throw CutOff(count: ending.cutOff) }
  }

  struct CutOff: Error, CustomStringConvertible {
    let count: Int
    var description: String { "\(count) connections did not take all of their answers in time" }
  }
}
