// SPDX-License-Identifier: Apache-2.0
/// A field of a notification to the service manager, as in sd_notify(3).
///
/// ```swift
/// try notify.send([.ready, .status("Serving 12 feeds")])
/// ```
///
/// A field is checked when it is sent: no value can contain a second field, and a field that the manager would ignore
/// is an error. The number in brackets is the first version of systemd that supports the field; older versions ignore
/// it.
public enum NotifyField: Sendable, Hashable {
  /// `READY=1`: the start, or a reload, has ended.
  case ready
  /// `STOPPING=1` (217): the service is stopping. Since 259 this is final.
  case stopping
  /// `RELOADING=1` and `MONOTONIC_USEC=` (217, 253): a reload has begun, at this time of `CLOCK_MONOTONIC` in
  /// microseconds, which must be later than the signal that requested it. The manager then waits for ``ready``. Usually
  /// ``reloadingNow`` is used.
  case reloading(at: UInt64)
  /// `STATUS=` (233): a line that `systemctl status` shows. Line breaks and control characters become spaces,
  /// characters that systemd's UTF-8 check refuses become U+FFFD, and the text is cut at a character to fit the
  /// message. An empty text clears it.
  case status(String)
  /// `EXTEND_TIMEOUT_USEC=` (236): starting, stopping or reloading may take this long from now, if the configured limit
  /// ends sooner. It must be repeated within each interval.
  case extendTimeout(Duration)

  /// `WATCHDOG=1`: a watchdog ping.
  case watchdog
  /// `WATCHDOG=trigger` (243): the service has failed; the manager acts as if the watchdog had expired, also without
  /// `WatchdogSec=`.
  case watchdogTrigger
  /// `WATCHDOG_USEC=` (233): a new watchdog period; it counts as a ping too. Zero turns the watchdog off.
  case watchdogPeriod(Duration)

  /// `ERRNO=` (233): the `errno` value of a failure.
  case errno(Int32)
  /// `BUSERROR=` (233): the D-Bus name of a failure, as `org.freedesktop.DBus.Error.TimedOut`.
  case busError(String)
  /// `VARLINKERROR=` (257): the Varlink name of a failure, as `org.varlink.service.InvalidParameter`.
  case varlinkError(String)
  /// `EXIT_STATUS=` (254): 0...255; informational, for the manager of a container or a virtual machine.
  case exitStatus(Int32)
  /// `NOTIFYACCESS=` (254): the processes that may send from now on.
  case notifyAccess(NotifyAccess)
  /// `RESTART_RESET=1` (258): reset the counter of restarts, for `RestartSteps=`.
  case restartReset

  /// `MAINPID=` (233): the main process is this one.
  case mainPID(Int32)
  /// `MAINPIDFDID=` (257): the inode of the pidfd of ``mainPID(_:)``, together with which it must be sent.
  case mainPIDFDID(UInt64)
  /// `MAINPIDFD=1` (257): the main process is the one of the pidfd that is sent along, as the only descriptor.
  case mainPIDFD

  /// `FDSTORE=1`, `FDNAME=` and, if not polled, `FDPOLL=0` (219, 233, 246): store the descriptors that are sent along.
  /// The manager removes a polled one once its peer hangs up. See ``DescriptorStore``.
  case storeDescriptors(name: String, polled: Bool)
  /// `FDSTOREREMOVE=1` and `FDNAME=` (236): remove all stored descriptors of this name.
  case removeDescriptors(name: String)

  /// Any other field, such as a private one, whose name should begin with `X_` and a namespace. The name consists of
  /// A–Z, 0–9 and `_` and is not one of the above; the value has no control characters.
  case custom(name: String, value: String)

  /// A reload that begins now: ``reloading(at:)`` with the time of this call, which must follow the signal.
  public static var reloadingNow: NotifyField { .reloading(at: MonotonicTime.now().microseconds) }
}

/// The processes whose messages the service manager accepts, as `NotifyAccess=` in systemd.service(5).
///
/// A message from another process is dropped with a line in the journal; the sender is not informed. `Type=notify`,
/// `Type=notify-reload`, `WatchdogSec=` and a descriptor store imply `main` where nothing is set.
public enum NotifyAccess: Sendable, Hashable {
  /// No process.
  case none
  /// The main process.
  case main
  /// The main process and the control processes of `ExecStartPre=`, `ExecReload=` and so on.
  case exec
  /// All processes in the unit's control group.
  case all
}
