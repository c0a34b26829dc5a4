// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import Dispatch
import Glibc

/// Says all notifications.
let log: @Sendable ([String]) async throws -> Void = { arguments in
  let lifecycle = loggedSubject(
    LifecycleConfiguration(logging: arguments.contains("all") ? .all : .timelines))
  try await lifecycle.runToTheEnd()
}

/// Two subjects in one process: one claims what the other has.
let twoSubjects: @Sendable ([String]) async throws -> Void = { _ in
  let first = LifecycleSubject(configuration: .init(signals: [.sigusr1: .saveState]))
  let second = LifecycleSubject()
  // Nothing of the second's was left behind: SIGUSR2 is free.
  let third = loggedSubject(.init(signals: [.sigusr2: .terminate]))
  try await first.start()
  do {
    try await second.start()
  } catch LifecycleError.signalInUse(let signal) {
    say("in use: \(signal)")
  }
  let result = try await third.run()
  withExtendedLifetime(first) {}
  finish(result)
}

/// `stop()` puts the dispositions back that it found: SIGUSR1 kills again.
let stopListening: @Sendable ([String]) async throws -> Void = { _ in
  signal(SIGUSR2, SIG_IGN)
  let lifecycle = loggedSubject()
  try await lifecycle.start()
  lifecycle.restoreSignals()
  var found = sigaction()
  sigaction(SIGUSR2, nil, &found)
  let isIgnored = unsafeBitCast(found.__sigaction_handler.sa_handler, to: Int.self) == 1
  say("stopped, SIGUSR2 is \(isIgnored ? "ignored" : "not ignored") again")
  lifecycle.pause(for: .operator)
  while true { pause() }
}

/// Forks without exec: the child is as if the package were not there, the parent undisturbed.
let forkChild: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = loggedSubject()
  try await lifecycle.start()
  let child = forkThePlainWay()
  if child == 0 {
    // This is a thread of Dispatch's, which block what the test will send.
    var none = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, nil)
    alarm(60)  // should the test die
    while true { pause() }
  }
  say("child \(child)")
  Thread.detach {
    var status: Int32 = 0
    waitpid(child, &status, 0)
    say("child ended by signal \(status & 0x7f)")
  }
  finish(await lifecycle.waitUntilTerminated())
}

/// A child spawned from a hook starts with no signal blocked.
let spawnFromHook: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject()
  let token = lifecycle.observe(DidFinishLaunching.self) { _ in
    var mask = sigset_t()
    pthread_sigmask(SIG_SETMASK, nil, &mask)
    let blocked = (1...64).filter { sigismember(&mask, Int32($0)) == 1 }
    say("blocked in the hook: \(blocked)")
  }
  try await lifecycle.runToTheEnd(token)
}

/// stdout is a pipe that nobody reads: exit(3) hangs as it flushes, so `exitGrace` must end it.
let fullStdout: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject(configuration: .init(exitGrace: .milliseconds(500)))
  lifecycle.expectExit()
  let filler = String(repeating: "x", count: 1000)
  let result = try await lifecycle.untilReturned {
    let flags = fcntl(1, F_GETFL)
    _ = fcntl(1, F_SETFL, flags | O_NONBLOCK)
    say("filling")
    while write(1, filler, 1000) == 1000 {}
    _ = fcntl(1, F_SETFL, flags)
    print(filler, terminator: "")  // stays in the C library's buffer, as no line ends
    try await lifecycle.clock.sleep(for: .seconds(1000))
  }
  exit(result.exitStatus)
}

/// Still alive after the last hook: ended by `_exit` with the code.
let exitGrace: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject(configuration: .init(exitGrace: .seconds(1)))
  let token = lifecycle.observe(WillEnterForeground.self) { _ in
    say("started")
  }
  lifecycle.expectExit()
  let result = try await lifecycle.run()
  token.cancel()
  say("code \(result.exitStatus)")
  blockThread()
}

/// Observers that only the body owns, and one that nobody does.
let ownership: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject()
  let poller = Logger("owned")
  lifecycle.addObserver(poller)
  addObservers(to: lifecycle)
  let result = try await lifecycle.untilReturned {
    try await lifecycle.foreground {
      for try await tick in lifecycle.ticks(every: .milliseconds(20)) {
        say("\(poller.name)tick \(tick)")
      }
    }
  }
  finish(result)
}

/// Nobody but the lifecycle holds them when this has returned.
@inline(never) func addObservers(to lifecycle: LifecycleSubject) {
  lifecycle.addObserver(Saver())
  lifecycle.addObserver(weakly: Orphan())
}

final class Saver: SaveObserver {
  func shouldSaveState(_ notification: ShouldSaveState) { say("saver save") }
}

final class Orphan: LaunchObserver, SaveObserver {
  func didFinishLaunching(_ notification: DidFinishLaunching) { say("orphan launch") }
  func shouldSaveState(_ notification: ShouldSaveState) { say("orphan save") }
}

/// Bodies that return, throw, or ignore their cancellation.
let body: @Sendable ([String]) async throws -> Void = { arguments in
  let lifecycle = loggedSubject(
    .init(hookTimeout: .milliseconds(300), cancellationGrace: .milliseconds(200)))
  let kind = arguments.first ?? ""
  let round = { @Sendable () async throws in
    say("round")
    do { try await lifecycle.clock.sleep(for: .seconds(1000)) } catch { throw BodyError() }
  }
  finish(
    try await lifecycle.untilReturned {
      say("body")
      switch kind {
      case "returns": return
      case "throws": throw BodyError()
      case "late-throw":
        try? await lifecycle.clock.sleep(for: .seconds(1000))
        throw BodyError()
      case "foreground": try await lifecycle.foreground(name: "work", round)
      case "ignores": while true { try? await Task.sleep(for: .milliseconds(10)) }
      default: try await lifecycle.clock.sleep(for: .seconds(1000))
      }
    })
}

struct BodyError: Error {}

/// A launch hook that throws ends the daemon.
let launchFails: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject()
  let token = lifecycle.observe(DidFinishLaunching.self) { _ in throw BodyError() }
  lifecycle.addObserver(Logger())
  let result = try await lifecycle.untilReturned { say("body") }
  withExtendedLifetime(token) {}
  finish(result)
}

/// A launch that takes its time: what comes meanwhile waits. The path of a readiness file may be given.
let slowLaunch: @Sendable ([String]) async throws -> Void = { arguments in
  var configuration = LifecycleConfiguration()
  if let file = arguments.first { configuration.interfaces.append(.readinessFile(file)) }
  let lifecycle = loggedSubject(configuration)
  let token = lifecycle.observe(DidFinishLaunching.self, phase: .init(order: -1)) { notification in
    say("launching")
    if let ready = arguments.first { say(access(ready, F_OK) == 0 ? "ready" : "not ready") }
    // A real wait: the test sends its signals meanwhile and then a line of its own.
    try await lifecycle.clock.sleep(for: .milliseconds(700))
  }
  try await lifecycle.runToTheEnd(token)
}

/// Cancelling the task that called `run` terminates.
let cancelCaller: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = loggedSubject()
  // Before the task, which may be quicker.
  let foregrounds = lifecycle.notifications(of: WillEnterForeground.self)
  let task = Task { try await lifecycle.run() }
  for await _ in foregrounds { break }
  task.cancel()
  finish(try await task.value)
}

/// Subjects that come and go: prints file descriptors, threads and resident memory before and after.
let churn: @Sendable ([String]) async throws -> Void = { arguments in
  let count = Int(arguments.first ?? "") ?? 1000
  func once() async throws {
    let lifecycle = LifecycleSubject()
    lifecycle.addObserver(QuietObserver())
    try await lifecycle.start()
    let backgrounds = lifecycle.notifications(of: DidEnterBackground.self)
    kill(getpid(), SIGUSR1)
    for await _ in backgrounds { break }  // before the subject goes, and with it the handler
    lifecycle.terminate()
    for await _ in lifecycle.notifications(of: WillTerminate.self) {}
  }
  for _ in 0..<50 { try await once() }
  threadsGone()
  let descriptors = descriptorCount()
  say("before \(descriptors) \(threadCount()) \(allocatedKilobytes())")
  for _ in 0..<count { try await once() }
  // What is said next shows whether it was so.
  _ = waits { threadCount() == 0 && descriptorCount() == descriptors }
  say("after \(descriptorCount()) \(threadCount()) \(allocatedKilobytes())")
}

final class QuietObserver: SaveObserver, BackgroundObserver {
  func didEnterBackground(_ notification: DidEnterBackground) {}
  func shouldSaveState(_ notification: ShouldSaveState) {}
}

/// A signal after the subject is gone and before exit(3).
let lateSignal: @Sendable ([String]) async throws -> Void = { _ in
  let result = try await runAndDrop()
  raise(SIGUSR1)
  finish(result)
}

@inline(never) func runAndDrop() async throws -> LifecycleExit {
  let lifecycle = loggedSubject()
  lifecycle.expectExit()
  return try await lifecycle.run()
}

/// Nobody reads stderr any more, and there is something to say.
let brokenStderr: @Sendable ([String]) async throws -> Void = { _ in
  var ends: [Int32] = [0, 0]
  pipe(&ends)
  dup2(ends[1], 2)
  close(ends[0])
  close(ends[1])
  let lifecycle = loggedSubject()
  try await lifecycle.runToTheEnd(
    lifecycle.observe(DidEnterBackground.self) { _ in throw BodyError() })
}

/// `runAndExit` under an asynchronous main, where the compiler does not see it.
@Sendable func inATask(_: [String]) async throws {
  func runAndExit() -> Never { LifecycleSubject.runAndExit { $0.addObserver(Logger()) } }
  runAndExit()
}
