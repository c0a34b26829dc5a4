// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Dispatch
import Glibc

// Daemons in which other code takes a signal, in the ways that libraries have.

private let own = DispatchQueue(label: "thief")

/// A source that says each signal, and cancels itself after so many.
private func source(for signal: Int32, until last: Int = .max) async -> any DispatchSourceSignal {
  let source = DispatchSource.makeSignalSource(signal: signal, queue: own)
  // Of its queue alone.
  nonisolated(unsafe) var count = 0
  source.setEventHandler {
    // What came before it was called is one call.
    count += Int(source.data)
    for _ in 0..<source.data { say("theirs") }
    if count == last { source.cancel() }
  }
  source.setCancelHandler { say("cancelled") }
  await withCheckedContinuation { continuation in
    source.setRegistrationHandler { continuation.resume() }
    source.activate()
  }
  return source
}

/// Cancels a source, and returns when that is over: until then it still receives.
private func cancel(_ source: any DispatchSourceSignal) async {
  await withCheckedContinuation { continuation in
    source.setCancelHandler { continuation.resume() }
    source.cancel()
  }
}

/// What a library found that took the signal, which it calls, or puts back.
nonisolated(unsafe) private var found = sigaction()

private func take(_ signal: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
  var theirs = sigaction()
  theirs.__sigaction_handler.sa_handler = handler
  sigaction(signal, &theirs, &found)
}

/// Gives a signal the handler that it had before the last time.
private func flip(_ signal: Int32) {
  var last = sigaction()
  sigaction(signal, &found, &last)
  found = last
}

/// Arguments: the number of a signal, and the ways in which it is taken, one after another.
let thief: @Sendable ([String]) async throws -> Void = { arguments in
  let signal = Int32(arguments[0])!
  let ways = arguments.dropFirst()
  var sources: [any DispatchSourceSignal] = []
  var tokens: [LifecycleToken] = []
  if ways.contains("before") { sources.append(await source(for: signal)) }
  if ways.contains("before-cancelled") { await cancel(await source(for: signal)) }
  // As system(3) does while it runs.
  if ways.contains("ignored-first") || ways.contains("launching") { Glibc.signal(signal, SIG_IGN) }
  // With Swift 6.2 the caller goes back to the pool: while that is blocked, the exit grace ends the daemon.
  let lifecycle = loggedSubject(.init(exitGrace: ways.contains("blocked") ? .seconds(1) : nil))
  let launch = lifecycle.observe(DidFinishLaunching.self) { _ in
    guard ways.contains("launching") else { return }
    Glibc.signal(signal, SIG_DFL)
    repeat { sigaction(signal, nil, &found) } while found.__sigaction_handler.sa_handler == nil
    say("taken")
  }
  defer { launch.cancel() }
  try await lifecycle.start()
  for way in ways {
    switch way {
    case "body": sources.append(await source(for: signal))
    case "cancels": sources.append(await source(for: signal, until: 50))
    case "cancelled": await cancel(await source(for: signal))
    case "function": Glibc.signal(signal) { _ in say("theirs") }
    case "library":
      Glibc.signal(
        signal, unsafeBitCast(dlsym(nil, "abs"), to: (@convention(c) (Int32) -> Void).self))
    case "ignored": Glibc.signal(signal, SIG_IGN)
    case "default": Glibc.signal(signal, SIG_DFL)
    case "returned":
      // As a library does that needs the signal for a while.
      take(signal) { _ in }
      while lifecycle.state != .background { await Task.yield() }
      sigaction(signal, &found, nil)
    case "hidden":
      // Dispatch's handler is gone with the library's, and its signalfd is there.
      take(signal) { _ in }
      sources.append(await source(for: signal))
      sigaction(signal, &found, nil)
    case "flips":
      // In turns Dispatch's and ours.
      sigaction(signal, nil, &found)
      sources.append(await source(for: signal))
      tokens.append(lifecycle.observe(ShouldReload.self) { _ in flip(signal) })
    case "late":
      // After the last check of the start.
      try await lifecycle.clock.sleep(for: .seconds(11))
    case "put-back":
      // Without SA_SIGINFO.
      let ours = Glibc.signal(signal, SIG_IGN)
      Glibc.signal(signal, ours)
    case "chained": take(signal) { found.__sigaction_handler.sa_handler($0) }
    case "ignored-first": Glibc.signal(signal, SIG_DFL)
    case "overlaps": sigaction(signal, nil, &found)
    case "system": runCommand("sleep 1.5")
    case "children": await makeChildren(lifecycle)
    case "paused": while lifecycle.state != .background { await Task.yield() }
    case "restored": lifecycle.restoreSignals()
    case "blocked":
      blockPool()
      blockDispatch()
    default: break
    }
    say("did \(way)")
  }
  let result = await lifecycle.waitUntilTerminated()
  withExtendedLifetime((sources, tokens)) {}
  if ways.contains("outlives") {
    lifecycle.restoreSignals()
    // As system(3) does that began before the end.
    if ways.contains("overlaps") { sigaction(signal, &found, nil) }
    // The task may have gone on on a thread of the subject, which blocks signals.
    var mask = sigset_t()
    sigaddset(&mask, signal)
    pthread_sigmask(SIG_UNBLOCK, &mask, nil)
    raise(signal)
  }
  finish(result)
}

/// Each changes its own dispositions; reports make the subject look at those of this process.
private func makeChildren(_ lifecycle: LifecycleSubject) async {
  struct Beat: CustomNotification {}
  for number in 0..<1000 {
    var child: pid_t = 0
    if number.isMultiple(of: 2) {
      var attributes = posix_spawnattr_t()
      var all = sigset_t()
      sigfillset(&all)
      posix_spawnattr_init(&attributes)
      posix_spawnattr_setsigdefault(&attributes, &all)
      posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
      // glibc's is a vfork(2) that shares no handlers.
      posix_spawn(&child, "/bin/true", nil, &attributes, [strdup("true"), nil], nil)
    } else {
      child = forkThePlainWay()
      if child == 0 {
        for signal in [SIGHUP, SIGTERM, SIGUSR1] { Glibc.signal(signal, SIG_DFL) }
        _exit(0)
      }
    }
    await lifecycle.post(Beat())
    waitpid(child, nil, 0)
  }
}

/// system(3) is hidden from Swift.
private func runCommand(_ command: String) {
  typealias System = @convention(c) (UnsafePointer<CChar>) -> Int32
  _ = unsafeBitCast(dlsym(nil, "system"), to: System.self)(command)
}
