// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import DaemonSystemd
import Synchronization

/// The right to be the active one of several daemons. A command, the *elector*, decides which of them has it.
///
/// ```swift
/// let lease = Lease(
///   "ledger",
///   command: ["etcdctl", "lock", "-w", "json", "--ttl=5", "ledger"],
///   tokenKey: "create_revision")
/// configuration.interfaces.append(.pausing(without: lease))
/// …
/// lifecycle.addForeground(name: "posting") {
///   guard let token = lease.token else { return }  // lost since: the pause is on its way
///   for try await _ in lifecycle.ticks(every: .seconds(1)) {
///     try await ledger.post(fencedBy: token)
///   }
/// }
/// ```
///
/// The first line that the elector prints means "you are active", and has the ``token``; the elector's end means "you are
/// not". Before that line and after that end the daemon is in the background. The elector runs while nothing else keeps the
/// daemon there. 0.1 to 2 s after its end it is run again. It receives SIGTERM when the daemon has saved its state: in a
/// stop, before the machine sleeps, and in a pause for another reason, such as an operator's. It also ends with the daemon,
/// however that ends. While an abandoned hook still runs, the lease is kept until the hook or the process ends.
///
/// A lease is not a lock: a process that was stopped, or whose network was cut, may go on for a while after another has
/// begun. Its writes must be fenced: see <doc:RunningOnSeveralMachines>.
///
/// Safe to use from any thread.
public final class Lease: Sendable {
  /// The name in the status, the journal and the reason.
  public let name: String
  let command: [String]
  let tokenKey: String?
  let handover: Duration?
  let environment: ServiceEnvironment

  struct State: Sendable {
    var token: String?
    /// The follower of the daemon that has the lease.
    weak var follower: LeaseFollower?
  }
  private let state = Mutex(State())
  /// Whether a subject has had it among its interfaces, or the warning that none has was logged.
  private let isKnown = Atomic(false)

  /// Makes a lease. Nothing runs before the daemon's launch.
  ///
  /// - Parameters:
  ///   - name: The lease's name in the status and the journal.
  ///   - command: The elector and its arguments. Its program is searched for in `PATH`. Its standard input is a pipe that
  ///     ends with the daemon, and its standard error is the daemon's. It inherits no other descriptor, no signal mask or
  ///     disposition, and no variable that is meant for the daemon alone, such as `NOTIFY_SOCKET`.
  ///   - tokenKey: The key of the token, where the line is a JSON object. Default `nil`: the token is the line.
  ///   - handover: How long the pause and its save may take after the lease was lost. Then the process ends with status
  ///     70, since another daemon may be active. It should be less than the lease's time to live. A stop that has begun
  ///     goes on to its saves instead. Default 3 s; `nil`: as long as the hooks have.
  ///   - environment: The environment. The elector gets its variables that are meant for children.
  public init(
    _ name: String, command: [String], tokenKey: String? = nil,
    handover: Duration? = .seconds(3), environment: ServiceEnvironment = .current
  ) {
    (self.name, self.command, self.environment) = (name, command, environment)
    self.tokenKey = tokenKey
    self.handover = handover.map(\.bounded)
  }

  /// The token that the elector has printed, to fence writes with; `nil` while the lease is not held.
  ///
  /// After a loss it is `nil` at once, also for work whose pause has not begun and for the pause's save. In a stop, and
  /// in a pause for another reason, it stays until the elector is ended, after the save.
  public var token: String? { current.token }

  @inline(never) var current: State {
    if !isKnown.exchange(true, ordering: .relaxed) {
      StandardError.writeLine(
        "lifecycle: The lease \(name): no daemon has it among its interfaces, so it is not held.",
        .warning, isJournal: StandardError.isJournal(environment))
    }
    return state.withLock { $0 }
  }

  /// Sets the token of the follower that has the lease.
  func set(_ token: String?, by follower: LeaseFollower) {
    state.withLock { if $0.follower === follower { $0.token = token } }
  }

  /// Takes the lease for a follower, unless another one has it. Returns whether this one has it.
  func isTaken(by follower: LeaseFollower) -> Bool {
    isKnown.store(true, ordering: .relaxed)
    return state.withLock { state in
      if state.follower?.isReplaceable(with: state.token) ?? true {
        (state.follower, state.token) = (follower, nil)
      }
      return state.follower === follower
    }
  }

  // A mock's, for the test kit.
  package var daemon: LifecycleCore? { current.follower?.daemon }
  package func grantToMock(_ token: String) { current.follower?.grant(token) }
  package func revokeFromMock() { current.follower?.revoke() }

  /// The token in a line; `nil` where the line has no such key.
  func token(in line: String) -> String? {
    guard let tokenKey else { return line }
    guard let key = line.firstRange(of: "\"\(tokenKey)\":") else { return nil }
    let value = line[key.upperBound...].drop { $0 == " " }
    let token =
      value.first == "\""
      ? value.dropFirst().prefix { $0 != "\"" } : value.prefix { $0.isASCII && $0.isNumber }
    return token.isEmpty ? nil : String(token)
  }

  /// The daemon's reason while it does not hold the lease.
  public var reason: BackgroundReason { BackgroundReason("waiting for the lease \(name)") }
}

extension LifecycleInterface {
  /// A lease: the daemon is in the background while it does not hold the lease.
  ///
  /// A lease is for one subject at a time; a second one stays in the background. A mock does not run the command:
  /// `grant(token:)` and `revoke()` of `DaemonLifecycleTesting` take its place. When a daemon gives up its lease for a
  /// pause, its `token` becomes `nil` before another daemon may have one.
  ///
  /// Under systemd the unit needs `KillMode=mixed`, which is checked at the start over D-Bus: with systemd's default the
  /// elector receives SIGTERM together with the daemon, and another daemon may be active before this one has saved.
  ///
  /// ``Lease`` has an example.
  public static func pausing(without lease: Lease) -> Self {
    Self("lease", of: lease.name, .local) { wiring in
      if wiring.parts.contains(where: { $0 is LeaseFollower }) {
        wiring.note("A daemon has one lease. With several it stands by: each waits for the others.")
      }
      let follower = LeaseFollower(lease, log: wiring.warn)
      wiring.parts.append(follower)
      wiring.followers.append { follower.follow(unsafeDowncast($0, to: LifecycleCore.self)) }
      if wiring.isSupervised {
        wiring.busInputs.append(.other { [warn = wiring.warn] in .killMode(lease, warn) })
      }
    }
  }
}
