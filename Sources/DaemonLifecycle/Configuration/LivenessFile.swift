/// A file that is touched as long as the daemon is well: systemd's watchdog, for a container's liveness probe.
///
///     configuration.livenessFile = "/run/mydaemon/alive"
///     // livenessProbe: { exec: { command: [sh, -c,
///     //   'test $(($(date +%s) - $(stat -c %Y /run/mydaemon/alive))) -lt 60'] } }
///
/// Twice in each period, Swift's global executor, the main actor (where anything runs on it) and the observers'
/// `checkHealth` hooks are asked, and when all have answered that they are well, the file's time becomes now. It is
/// made when the launch has ended. A daemon that is paused is as alive as any other. While it terminates, the file
/// is touched without asking: the stop has a limit of its own.
///
/// The file has no content, and stays behind at the end: what tells is its age. Let the probe be patient, twice the
/// period and more, since a container is ended for it. Like a ``ReadinessFile`` it must be on a local file system.
public struct LivenessFile: Sendable, Hashable, ExpressibleByStringLiteral {
  /// Where it is: an absolute path.
  public var path: String
  /// In what time the daemon must be well once; it is asked more than twice. Default 30 s. Under a systemd that asks more
  /// often (`WatchdogSec=`), as often as that.
  public var period: Duration

  /// The file at this absolute path.
  public init(_ path: String, period: Duration = .seconds(30)) {
    self.path = path
    self.period = period
  }

  /// Where a service manager asks too, as often as the one who is less patient.
  func period(under watchdogPeriod: Duration?) -> Duration {
    min(watchdogPeriod ?? period, period)
  }

  /// As `init(_:period:)`, from a literal.
  public init(stringLiteral path: String) { self.init(path) }
}
