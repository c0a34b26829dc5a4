// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Glibc
import Synchronization
import TestLimits

// Daemons whose descriptors are taken away: closed under them, or with none left to have.

/// Closes, at SIGUSR1, all descriptors but those of the test, and opens others that get their numbers.
///
/// Arguments: `hook` or `thread`, which says where; `files`, `sockets` or `eventfds`, which says what gets the numbers; and
/// the path of a file. In the end it says `untouched`, or which of them were used.
let robbed: @Sendable ([String]) async throws -> Void = { arguments in
  guard arguments.count == 3 else { exit(64) }
  let lifecycle = loggedSubject()
  let robbery = Robbery(of: arguments[1], arguments[2])
  let token = lifecycle.observe(DidEnterBackground.self) { _ in
    if arguments[0] == "hook" { return robbery.commit() }
    Thread.detach { robbery.commit() }
  }
  let ending = lifecycle.observe(WillTerminate.self) { _ in say(robbery.outcome()) }
  let result = try await lifecycle.untilReturned {
    for try await _ in lifecycle.ticks(every: .milliseconds(100)) {}
  }
  withExtendedLifetime((token, ending)) {}
  finish(result)
}

/// What others do with the numbers of descriptors that are not theirs to close.
final class Robbery: Sendable {
  private let kind: String
  private let path: String
  private let taken = Mutex<[Int32]>([])

  init(of kind: String, _ path: String) {
    self.kind = kind
    self.path = path
  }

  /// Once: a second pause must not take what the first has opened.
  func commit() {
    // One that has seen that a descriptor is readable reads what has its number by then. The caller may be a thread of the
    // package's, or have the name of one.
    while threads().contains(where: { $0.name == "lifecycle" && !$0.isAsleep && !$0.isOwn }) {
      sched_yield()
    }
    taken.withLock { taken in
      guard taken.isEmpty else { return }
      // 9 is how the test learns of our end.
      let numbers = (Int32(3)..<256).filter { $0 != 9 && fcntl($0, F_GETFD) >= 0 && !isRead($0) }
      for number in numbers { close(number) }
      while (taken.last ?? 0) <= (numbers.last ?? 0) { taken += opened() }
      // Before anybody can say that it goes on all the same.
      say("robbed")
    }
  }

  /// Whether it is of a folder or a file, which nothing keeps open: a look at who has the signals, 0.1 s after the launch,
  /// may be reading it at this moment.
  private func isRead(_ number: Int32) -> Bool {
    var status = stat()
    return fstat(number, &status) == 0 && [S_IFDIR, S_IFREG].contains(status.st_mode & S_IFMT)
  }

  // Glibc's module has no eventfd(2).
  private static let eventfd = unsafeBitCast(
    dlsym(nil, "eventfd")!, to: (@convention(c) (UInt32, Int32) -> Int32).self)

  private func opened() -> [Int32] {
    var pair: [Int32] = [-1, -1]
    switch kind {
    case "files": return [open(path, O_RDWR)]
    case "eventfds": return [Self.eventfd(0, O_NONBLOCK)]
    default:
      socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair)
      return pair
    }
  }

  /// Closed, read from or written to.
  func outcome() -> String {
    let used = taken.withLock { $0.filter { !isUntouched($0) } }
    return used.isEmpty ? "untouched" : "used \(used)"
  }

  private func isUntouched(_ number: Int32) -> Bool {
    if kind == "files" { return lseek(number, 0, SEEK_CUR) == 0 }
    var bytes: UInt64 = 0
    return read(number, &bytes, 8) == -1 && errno == EAGAIN
  }
}

/// As `log`, and from the foreground on without a thread to be had; that limit does not bind root. With `hang`, a hook
/// blocks its thread for ever; with `foreground`, `draining` or `restarting`, there is a body of that kind, which needs a
/// thread of Swift's pool to end, and from whose beginning on there is none to be had. With `sleeping` or `receiving`, a
/// body waits for what comes, and a resume gives threads back; with `posting`, a hook posts. With `launching` there is none for a body to begin with,
/// with `occupied` the only one of the pool's is blocked.
let threadless: @Sendable ([String]) async throws -> Void = { arguments in
  let lifecycle = loggedSubject(
    .init(hookTimeout: arguments.isEmpty ? .seconds(10) : .milliseconds(500)))
  if arguments.contains("hang") { lifecycle.addObserver(HangingObserver(blocks: true)) }
  let inRounds = ["foreground", "draining", "restarting"].contains(arguments.first)
  let launch = lifecycle.observe(DidFinishLaunching.self, phase: .init(order: 1)) { _ in
    if arguments.first == "launching" { limitThreads(to: 1) }
  }
  struct Note: CustomNotification {}
  let posts = lifecycle.observe(DidEnterBackground.self) { _ in
    if arguments.first == "posting" {
      await lifecycle.post(Note())
      say("answered")
    }
  }
  let limitsItself = ["launching", "occupied", "sleeping", "receiving"].contains(arguments.first)
  let token = lifecycle.observe(WillEnterForeground.self, phase: .init(order: 1)) {
    if $0.cause.signal != nil {
      limitThreads(to: 1000)
    } else if !inRounds, !limitsItself {
      limitThreads(to: 1)
    }
  }
  @Sendable func takeThreadsOfRounds() {
    // Whatever Swift's pool has by now: on a busy machine, now and then one more.
    if arguments.contains("blocked") {
      for _ in 0..<64 { Task.detached { while true { pause() } } }
    }
    limitThreads(to: 1)
  }
  @Sendable func work() async throws {
    if inRounds { takeThreadsOfRounds() }
    try await lifecycle.clock.sleep(for: .seconds(1000))
  }
  if arguments.last != "goes-on" { lifecycle.expectExit() }
  let result: LifecycleExit
  switch arguments.first {
  case "foreground":
    result = try await lifecycle.untilReturned {
      try await lifecycle.foreground { try await work() }
    }
  case "draining":
    result = try await lifecycle.untilReturned {
      try await lifecycle.foreground(draining: .milliseconds(500)) { round in
        takeThreadsOfRounds()
        try await round.waitUntilEnding()
      }
    }
  case "restarting":
    result = try await lifecycle.untilReturned {
      try await lifecycle.foreground(restarting: .backoff()) { try await work() }
    }
  case "sleeping":
    result = try await lifecycle.untilReturned {
      limitThreads(to: 1)
      for try await _ in lifecycle.ticks(every: .seconds(6)) { say("tick") }
    }
  case "launching": result = try await lifecycle.untilReturned { say("began") }
  case "occupied":
    result = try await lifecycle.untilReturned {
      async let later: Void = lifecycle.clock.sleep(for: .seconds(9))
      // When threads that the start has left have ended.
      try await lifecycle.clock.sleep(for: .seconds(7))
      limitThreads(to: 1)
      while true { pause() }
      try await later
    }
  case "receiving":
    result = try await lifecycle.untilReturned {
      let notifications = lifecycle.notifications(of: DidEnterBackground.self)
      limitThreads(to: 1)
      for await _ in notifications { say("received") }
    }
  default: result = try await lifecycle.run()
  }
  withExtendedLifetime((launch, token, posts)) {}
  finish(result)
}

private func limitThreads(to count: rlim_t) {
  // RLIMIT_NPROC, which Glibc's module lacks.
  let threadsOfAUser = __rlimit_resource_t(6)
  var limit = rlimit()
  getrlimit(threadsOfAUser, &limit)
  limit.rlim_cur = min(count, limit.rlim_max)
  setrlimit(threadsOfAUser, &limit)
  say(count == 1 ? "alone" : "with others")
}

/// Uses, from SIGUSR1 on, all that Dispatch and Swift make descriptors for when they need them first. Says `task slept`,
/// `main actor`, and so on, as each has worked.
let lateUses: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = loggedSubject()
  lifecycle.addObserver(MainObserver())
  let token = lifecycle.observe(DidEnterBackground.self) { _ in
    try await Task.sleep(for: .milliseconds(10))
    say("task slept")
    try await Task.sleep(for: .milliseconds(10), clock: .suspending)
    say("suspending clock slept")
    await MainActor.run { say("main actor") }
    await Task.detached { say("pool") }.value
    try await lifecycle.clock.sleep(for: .milliseconds(10))
    say("lifecycle clock slept")
  }
  try await lifecycle.runToTheEnd(token)
}

/// A daemon from which `lose` takes something at SIGUSR1. Its end takes a second, in which nothing may spin; with `slow`,
/// as long as a hook may take.
private func losing(
  _ arguments: [String], _ lose: @escaping @Sendable () -> Void
) async throws {
  let lifecycle = loggedSubject(.init(escalationDelay: .zero))
  let losing = lifecycle.observe(DidEnterBackground.self) { notification in
    if notification.cause.signal == .sigusr1 { lose() }
  }
  let ending = lifecycle.observe(WillTerminate.self) { _ in
    say("ending")
    try? await lifecycle.clock.sleep(for: .seconds(arguments.last == "slow" ? 1000 : 1))
    say("ended")
  }
  let result = try await lifecycle.untilReturned {
    for try await _ in lifecycle.ticks(every: .milliseconds(100)) {}
  }
  withExtendedLifetime((losing, ending)) {}
  finish(result)
}

/// Closes one of the descriptors of the thread that listens: `timer`, `signals`, `reader` or `writer`.
let oneLost: @Sendable ([String]) async throws -> Void = { arguments in
  try await losing(arguments) {
    func numbers(_ kind: String) -> [Int32] {
      entries(of: "/proc/self/fd").compactMap { Int32($0) }.sorted()
        .filter { link(of: "/proc/self/fd/\($0)").hasPrefix(kind) }
    }
    let waker = numbers("socket:").filter(isOfAPair)
    precondition(waker.count == 2, "\(waker) instead of the waker's two")
    switch arguments[0] {
    case "timer": close(tickingTimer(of: numbers("anon_inode:[timerfd]")))
    case "signals": close(numbers("anon_inode:[signalfd]")[0])
    case "reader": close(waker[0])
    default: close(waker[1])
    }
    say("lost")
  }
}

/// Whether it is an end of a pair of connected stream sockets that this process has made: what it was born with is not
/// closed on exec, and the test runner may leave it any socket.
private func isOfAPair(_ socket: Int32) -> Bool {
  var (kind, peer) = (Int32(0), sockaddr_un())
  var kindSize = socklen_t(MemoryLayout.size(ofValue: kind))
  var peerSize = socklen_t(MemoryLayout.size(ofValue: peer))
  let isConnected = withUnsafeMutablePointer(to: &peer) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(socket, $0, &peerSize) == 0 }
  }
  // The peer has no name: it was not connected to.
  return fcntl(socket, F_GETFD) & FD_CLOEXEC != 0
    && getsockopt(socket, SOL_SOCKET, SO_TYPE, &kind, &kindSize) == 0
    && kind == Int32(SOCK_STREAM.rawValue) && isConnected
    && peerSize == MemoryLayout<sa_family_t>.size
}

/// Of a timerfd, in nanoseconds; `nil` where the number has none. Glibc's module has no timerfd_gettime(2).
private func timeLeft(of timer: Int32) -> Int? {
  typealias GetTime = @convention(c) (Int32, UnsafeMutablePointer<itimerspec>) -> Int32
  var time = itimerspec()
  let isOne = unsafeBitCast(dlsym(nil, "timerfd_gettime")!, to: GetTime.self)(timer, &time) == 0
  return isOne ? Int(time.it_value.tv_sec) * 1_000_000_000 + Int(time.it_value.tv_nsec) : nil
}

/// The timerfd that is set to the next tick, again and again; Dispatch's go off once a second at most.
private func tickingTimer(of timers: [Int32]) -> Int32 {
  func isTicking(_ timer: Int32) -> Bool {
    timeLeft(of: timer).map { 1...100_000_000 ~= $0 } ?? false
  }
  var ticking: [Int32] = []
  while ticking.count != 1 {
    ticking = timers
    for _ in 0..<10 {
      ticking = ticking.filter(isTicking)
      usleep(70_000)
    }
  }
  return ticking[0]
}

/// The kernel refuses poll(2) with the error of this number: EINVAL, since it waits for more than there may be.
let pollRefused: @Sendable ([String]) async throws -> Void = { arguments in
  let error = Int32(arguments[0])!
  try await losing(arguments) {
    guard error == EINVAL else { return say("refused \(refuse_poll(error))") }
    let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    getrlimit(descriptors, &limit)
    limit.rlim_cur = 1
    say("refused \(setrlimit(descriptors, &limit))")
  }
}

/// What a subject changes in the process before its start, and when its start fails: says `same`, or what is different.
let unstarted: @Sendable ([String]) async throws -> Void = { _ in
  // Glibc's module has no __flbf(3), and Swift 6 not the variable.
  let isLineBuffered = unsafeBitCast(
    dlsym(nil, "__flbf")!, to: (@convention(c) (OpaquePointer) -> Int32).self)
  let output = dlsym(nil, "stdout")!.load(as: OpaquePointer.self)
  func descriptors() -> [String] {
    entries(of: "/proc/self/fd").sorted().map { "\($0) \(link(of: "/proc/self/fd/\($0)"))" }
      // Not the one by which this is read, nor Dispatch's timer: it has one a second after the first task on Swift's pool.
      .filter { !$0.contains("/proc/") && !$0.hasSuffix(" ") && !$0.hasSuffix("[timerfd]") }
  }
  var ends: [Int32] = [-1, -1]
  pipe(&ends)
  let state = { descriptors() + ["\(isLineBuffered(output))", "\(threadCount())"] }
  // Once it is closed, a check of who has the signals may have its number for a moment.
  let readiness = { ["\(fcntl(ends[1], F_GETFD))"] }
  let before = state() + readiness()
  func check(_ name: String) {
    let now = state() + readiness()
    say(now == before ? "\(name): same" : "\(name): \(now), not \(before)")
  }
  var signals = SignalMap.standard
  signals[UnixSignal(rawValue: SIGSEGV)!] = .reload
  let unused = LifecycleSubject(
    configuration: LifecycleConfiguration(
      signals: signals, interfaces: .standard + [.readinessDescriptor(ends[1])]))
  check("made")
  do { try await unused.start() } catch { say("\(error)") }
  check("failed")
  // It has not the lease either, and gives the signals to the next, from which it can't take them. A bus would be opened,
  // with its libraries, while this reads what is open.
  var configuration = LifecycleConfiguration(
    interfaces: .standard + [.readinessDescriptor(ends[1])])
  for bus: LifecycleInterface in [.stopTimeout, .unitJob, .sleep] {
    configuration.interfaces.remove(bus)
  }
  let lifecycle = LifecycleSubject(configuration: configuration)
  try await lifecycle.start()
  let other = LifecycleSubject(configuration: LifecycleConfiguration(signals: [.sigterm: .reload]))
  // The one that listens and the two that stay for hooks: a thread has its name when it runs, and a fourth, which a busy
  // machine brings, ends after a second. Readiness is reported after the start, and its descriptor is closed.
  if !waits(for: { threadCount() == 3 && fcntl(ends[1], F_GETFD) == -1 }) { say("no rest") }
  let started = state()
  do { try await other.start() } catch { say("\(error)") }
  let isSame = waits(for: { state() == started })
  say(isSame ? "in use: same" : "in use: \(state()), not \(started)")
  lifecycle.terminate()
  withExtendedLifetime((unused, other)) {}
  finish(await lifecycle.waitUntilTerminated())
}
