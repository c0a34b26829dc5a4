// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The time that the service manager was asked to wait, beyond the unit's own limit.
///
/// systemd forgets it at a daemon-reload: its timer counts from the unit's limit again, and where that is over, it kills
/// the daemon, unless a message has arrived meanwhile, which it reads first. So it is asked within each daemon-reload.
struct TimeExtension: Sendable {
  /// A daemon-reload, for which a dozen generators are run, takes longer.
  static let interval = Duration.milliseconds(20)
  /// The time that is asked for beyond a hook's, and by which systemd's clock may be ahead.
  static let margin = Duration.seconds(1)

  let until: MonotonicTime
  /// When it is asked again: in a stop not before the limit that is known.
  var next: MonotonicTime
}
