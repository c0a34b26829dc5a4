/// A file that is there exactly while the daemon is ready: launched, in the foreground, and not about to
/// leave it. For a container's readiness probe, or a load balancer's check.
///
///     var configuration = LifecycleConfiguration()
///     configuration.readinessFile = "/run/mydaemon/ready"
///     // readinessProbe: { exec: { command: [test, -e, /run/mydaemon/ready] } }
///
/// - It appears when every hook of the launch has ended, and again whenever the daemon is back in the
///   foreground. A launch that fails makes none.
/// - It goes at once when a pause, a suspend or a termination is asked for: before any hook hears of it, also
///   while a hook of something else still runs, and at the beginning of
///   ``LifecycleConfiguration/drainDelay``. A pause that is taken back before it was delivered brings it back.
/// - A reload, a save and pressure leave it where it is.
///
/// It holds three lines: `ready`, `pid 7`, and `since` with the time of day. It appears whole, with mode 0600;
/// who may search its directory can see that it is there.
///
/// A process that is killed leaves it behind. The next launch begins by removing it; one that another living
/// process holds is not touched. Nor is anything that is not such a file (a directory, a link, another user's
/// file, other content): then there is a warning, the daemon goes on, and probes find it not ready.
///
/// One that can't be made or removed, because the disk is full or the process has no descriptor left, is tried again
/// until it works, at most two seconds apart. What the first one needs is reserved before the launch.
///
/// The directory must exist and be the daemon's to write to, and must be on a local file system, such as an
/// `emptyDir` or `/run`: the file is made and removed by the threads that deliver, which must not wait.
/// Every subject needs a file of its own.
public struct ReadinessFile: Sendable, Hashable, ExpressibleByStringLiteral {
  /// Where it is: an absolute path.
  public var path: String

  /// The file at this absolute path. What is wrong with a path is said when the daemon starts.
  public init(_ path: String) { self.path = path }

  /// As `init(_:)`, from a literal.
  public init(stringLiteral path: String) { self.path = path }
}
