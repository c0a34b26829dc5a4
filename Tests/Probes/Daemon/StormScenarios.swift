// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Dispatch
import Glibc
import Synchronization

/// Posted by SIGRTMIN: what was taken in before it has been delivered when it is heard.
struct Marker: CustomNotification {}

/// Says each hook with the times of its begin and end, `class save 123 456`, and after each marker the
/// state, `taken in: foreground`. `storm MICROSECONDS`: how long each hook takes.
let storm: @Sendable ([String]) async throws -> Void = { arguments in
  // The grace is for the test to read what is still to be said; how long that took is the test's to judge.
  var configuration = LifecycleConfiguration(exitGrace: .seconds(10))
  configuration.signals[.realTime(0)!] = .post(Marker())
  let lifecycle = LifecycleSubject(configuration: configuration)
  let printer = Printer()
  let log = HookLog(
    printer: printer, clock: lifecycle.clock,
    duration: .microseconds(Int(arguments.first ?? "") ?? 300))
  let first = ClassWitness(log)
  let second = ActorWitness(log)
  lifecycle.addObserver(first)
  lifecycle.addObserver(second)
  let token = lifecycle.observe(Marker.self) { [weak lifecycle] _ in
    if let lifecycle { printer.say("taken in: \(lifecycle.state)") }
  }
  let result = try await lifecycle.run()
  withExtendedLifetime((first, second, token)) {}
  printer.say("exit \(result.exitStatus)")
  printer.flush()
  exit(result.exitStatus)
}

/// `send PID COUNT SEED`: that many SIGUSR1, SIGUSR2 and SIGHUP in random order, in bursts with random
/// pauses. A count of 0: until it is killed.
let sendStorm: @Sendable ([String]) async throws -> Void = { arguments in
  guard arguments.count == 3, let pid = pid_t(arguments[0]), let count = Int(arguments[1]),
    let seed = UInt64(arguments[2])
  else { exit(64) }
  var random = SplitMix(state: seed)
  var lastHangUp: UInt64 = 0
  var sent = 0
  while count == 0 || sent < count {
    for _ in 0..<Int.random(in: 1...40, using: &random) where count == 0 || sent < count {
      let signal = [SIGUSR1, SIGUSR2, SIGHUP].randomElement(using: &random)!
      if signal == SIGHUP { lastHangUp = nanoseconds() }
      guard kill(pid, signal) == 0 else { exit(1) }
      sent += 1
      if sent == 1000 { say("under way") }
    }
    // The daemon finds itself now in a burst, now with nothing to do.
    let next = nanoseconds() + UInt64.random(in: 0...200_000, using: &random)
    while nanoseconds() < next {}
  }
  say("last SIGHUP at \(lastHangUp)")
}

/// Of `CLOCK_MONOTONIC`, which all processes share.
func nanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }
}

/// Lines from a thread of its own, so that a hook never waits for a reader of its log.
final class Printer: Sendable {
  private let waiting = Mutex<(text: String, flushes: [DispatchSemaphore])>(("", []))
  private let news = DispatchSemaphore(value: 0)

  init() {
    Thread.detach { [self] in
      while true {
        news.wait()
        var (text, flushes) = waiting.withLock { waiting in
          defer { waiting = ("", []) }
          return waiting
        }
        text.withUTF8 { bytes in
          var done = 0
          while done < bytes.count {
            let count = write(1, bytes.baseAddress! + done, bytes.count - done)
            if count < 0, errno != EINTR { return }
            done += max(0, count)
          }
        }
        for flush in flushes { flush.signal() }
      }
    }
  }

  func say(_ line: String) {
    waiting.withLock { $0.text += line + "\n" }
    news.signal()
  }

  /// Returns when all that was said is out.
  func flush() {
    let isOut = DispatchSemaphore(value: 0)
    waiting.withLock { $0.flushes.append(isOut) }
    news.signal()
    isOut.wait()
  }
}

struct HookLog: Sendable {
  let printer: Printer
  let clock: LifecycleClock
  let duration: Duration

  /// A hook that takes its time, so that signals find it at work, and what would run beside it does.
  func record(_ hook: String) async {
    let began = nanoseconds()
    try? await clock.sleep(for: duration)
    printer.say("\(hook) \(began) \(nanoseconds())")
  }
}

final class ClassWitness: ForegroundObserver, BackgroundObserver, SaveObserver, ReloadObserver,
  TerminationObserver
{
  let log: HookLog
  init(_ log: HookLog) { self.log = log }

  func willEnterForeground(_: WillEnterForeground) async {
    await log.record("class foreground")
  }
  func didEnterBackground(_: DidEnterBackground) async { await log.record("class background") }
  func shouldSaveState(_: ShouldSaveState) async { await log.record("class save") }
  func shouldReload(_: ShouldReload) async { await log.record("class reload") }
  func willTerminate(_: WillTerminate) async { await log.record("class terminate") }
}

actor ActorWitness: ForegroundObserver, BackgroundObserver, SaveObserver, ReloadObserver,
  TerminationObserver
{
  let log: HookLog
  init(_ log: HookLog) { self.log = log }

  func willEnterForeground(_: WillEnterForeground) async {
    await log.record("actor foreground")
  }
  func didEnterBackground(_: DidEnterBackground) async { await log.record("actor background") }
  func shouldSaveState(_: ShouldSaveState) async { await log.record("actor save") }
  func shouldReload(_: ShouldReload) async { await log.record("actor reload") }
  func willTerminate(_: WillTerminate) async { await log.record("actor terminate") }
}
