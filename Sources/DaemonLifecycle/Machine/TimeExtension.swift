// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The time that the service manager was asked to wait, beyond the unit's own limit.
///
/// systemd forgets it at a daemon-reload: its timer counts from the unit's limit again, and where that is over, it kills
/// the daemon, unless a message has arrived meanwhile, which it reads first. So it is asked again as each daemon-reload
/// begins, which the bus reports.
struct TimeExtension: Sendable {
  /// The time without a bus is less than any daemon-reload takes, which runs a dozen generators.
  static let (interval, withoutBus) = (Duration.seconds(1), Duration.milliseconds(100))
  /// The time that is asked for beyond a hook's, and by which systemd's clock may be ahead.
  static let margin = Duration.seconds(1)

  let until: MonotonicTime
  /// When it is asked again: in a stop not before the known limit.
  var next: MonotonicTime
}
