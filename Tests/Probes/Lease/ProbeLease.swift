// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleLease
import Glibc

/// A daemon with a lease: `ProbeLease BEHAVIOUR COMMAND…`. It prints what it does, with the token that it has then.
@main struct ProbeLease {
  enum Behaviour: String {
    case usual
    /// Its save takes a second; longer than the handover's second.
    case saving, slow
    /// Its work does not end, and is abandoned.
    case stuck
    /// As its work begins, all its descriptors are closed, or its timer.
    case robbed, untimed
    /// It forks as its work begins; each fork goes on as long as the daemon.
    case forking
    /// Its tokens have a key.
    case keyed
    /// It has no permission for pidfd_open(2).
    case refused
    /// Its lease is not among its interfaces.
    case alone
  }

  static func main() {
    let behaviour = Behaviour(rawValue: CommandLine.arguments[1])!
    if behaviour == .refused { refusePidfds() }
    // It is what its guard begins with.
    if behaviour == .refused { signal(SIGUSR1, SIG_IGN) }
    let lease = Lease(
      "probe", command: Array(CommandLine.arguments.dropFirst(2)),
      tokenKey: behaviour == .keyed ? "n" : nil, handover: .seconds(1))
    var configuration = LifecycleConfiguration()
    if behaviour != .alone { configuration.interfaces.append(.pausing(without: lease)) }
    if behaviour == .refused { configuration.signals[.sigusr1] = nil }
    configuration.hookTimeout = .milliseconds(500)
    configuration.cancellationGrace = .milliseconds(100)
    LifecycleSubject.runAndExit(configuration: configuration) { lifecycle in
      lifecycle.addObserver(Saver(lease, behaviour), timeout: .seconds(10))
      lifecycle.addForeground(name: "work") {
        print("works with \(lease.token ?? "no token")")
        if behaviour == .forking { forkIdle() }
        if behaviour == .robbed || behaviour == .untimed { rob(behaviour == .untimed) }
        if behaviour == .stuck { await Task.detached { while true { usleep(100_000) } }.value }
        for try await _ in lifecycle.ticks(every: .seconds(1)) {}
      }
    }
  }
}

final class Saver: SaveObserver {
  private let lease: Lease
  private let seconds: UInt32

  init(_ lease: Lease, _ behaviour: ProbeLease.Behaviour) {
    self.lease = lease
    seconds = behaviour == .saving ? 1 : behaviour == .slow ? 8 : 0
  }

  func shouldSaveState(_: ShouldSaveState) async {
    print("saves with \(lease.token ?? "no token")")
    sleep(seconds)
    print("has saved with \(lease.token ?? "no token")")
  }
}

/// The newest first, so that the lease's are gone when the daemon notices.
private func rob(_ timerOnly: Bool) {
  for descriptor: Int32 in (3..<1024).reversed() {
    var name = [UInt8](repeating: 0, count: 64)
    let count = readlink("/proc/self/fd/\(descriptor)", &name, name.count)
    let isTimer = String(decoding: name.prefix(max(count, 0)), as: UTF8.self).contains("timerfd")
    if count > 0, isTimer || !timerOnly { close(descriptor) }
  }
}

/// fork(2), which Swift does not import. The child closes what a test waits for, and ends with the daemon.
private func forkIdle() {
  typealias Fork = @convention(c) () -> pid_t
  guard let symbol = dlsym(nil, "fork") else { return }
  let parent = getpid()
  guard unsafeBitCast(symbol, to: Fork.self)() == 0 else { return }
  for descriptor: Int32 in [1, 2, 9] { close(descriptor) }
  while getppid() == parent { usleep(10_000) }
  _exit(0)
}

/// prctl(2) with a filter, which has the number of pidfd_open(2) on every machine.
private func refusePidfds() {
  typealias Prctl = @convention(c) (Int32, UInt, UnsafeRawPointer?, UInt, UInt) -> Int32
  typealias Filter = (count: UInt16, code: UnsafePointer<UInt64>)
  guard let symbol = dlsym(nil, "prctl") else { return }
  let prctl = unsafeBitCast(symbol, to: Prctl.self)
  // Load the number; one further if it is that, else two; EPERM; allow.
  let code: [UInt64] = [
    0x20, 0x15 | 1 << 24 | 434 << 32, 0x06 | 0x5_0001 << 32, 0x06 | 0x7fff_0000 << 32,
  ]
  code.withUnsafeBufferPointer { code in
    withUnsafePointer(to: (count: UInt16(code.count), code: code.baseAddress!) as Filter) {
      filter in
      guard prctl(38, 1, nil, 0, 0) == 0, prctl(22, 2, filter, 0, 0) == 0 else { exit(9) }
    }
  }
}
