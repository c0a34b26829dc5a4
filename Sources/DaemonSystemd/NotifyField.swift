// SPDX-License-Identifier: Apache-2.0
/// One thing that a service tells its service manager, as in sd_notify(3).
///
/// ```swift
/// try notify.send([.ready, .status("Serving 12 feeds")])
/// ```
///
/// A field is checked when it is sent: no value can smuggle in a second field, and what the manager would ignore
/// is an error instead. The numbers in brackets name the systemd version that first understood the field; an
/// older one ignores it.
public enum NotifyField: Sendable, Hashable {
  /// `READY=1`: starting, or a reload, is done.
  case ready
  /// `STOPPING=1` (217): the service is going down. Final since 259: nothing takes it back.
  case stopping
  /// `RELOADING=1` and `MONOTONIC_USEC=` (217, 253): a reload has begun, at this time of `CLOCK_MONOTONIC` in
  /// microseconds, which must lie after the signal that asked for it. The manager then waits for ``ready``.
  /// Usually ``reloadingNow``.
  case reloading(at: UInt64)
  /// `STATUS=` (233): one line for people, seen in `systemctl status`. Line breaks and control characters become
  /// spaces, what systemd's UTF-8 check refuses becomes U+FFFD, and it is cut at a character to fit the message. An
  /// empty one clears it.
  case status(String)
  /// `EXTEND_TIMEOUT_USEC=` (236): this long from now for starting, stopping or reloading, where the limit
  /// configured would come sooner. Must be repeated within each interval.
  case extendTimeout(Duration)

  /// `WATCHDOG=1`: still alive.
  case watchdog
  /// `WATCHDOG=trigger` (243): something is wrong inside; handle it as if the watchdog had expired. Works without
  /// `WatchdogSec=` too.
  case watchdogTrigger
  /// `WATCHDOG_USEC=` (233): a new watchdog period, which counts as a ping too. Zero turns the watchdog off.
  case watchdogPeriod(Duration)

  /// `ERRNO=` (233): the `errno` value of a failure.
  case errno(Int32)
  /// `BUSERROR=` (233): the D-Bus name of a failure, as `org.freedesktop.DBus.Error.TimedOut`.
  case busError(String)
  /// `VARLINKERROR=` (257): the Varlink name of a failure, as `org.varlink.service.InvalidParameter`.
  case varlinkError(String)
  /// `EXIT_STATUS=` (254): 0...255; informational, for what runs a container or a virtual machine.
  case exitStatus(Int32)
  /// `NOTIFYACCESS=` (254): who may send from now on.
  case notifyAccess(NotifyAccess)
  /// `RESTART_RESET=1` (258): begin again to count restarts, for `RestartSteps=`.
  case restartReset

  /// `MAINPID=` (233): the main process is this one.
  case mainPID(Int32)
  /// `MAINPIDFDID=` (257): the pidfd inode of ``mainPID(_:)``, with which it must be sent.
  case mainPIDFDID(UInt64)
  /// `MAINPIDFD=1` (257): the main process is the one that the pidfd sent along refers to: exactly one descriptor.
  case mainPIDFD

  /// `FDSTORE=1`, `FDNAME=` and, if not polled, `FDPOLL=0` (219, 233, 246): keep the descriptors sent along. A
  /// polled one is dropped by the manager once its peer hangs up. See ``DescriptorStore``.
  case storeDescriptors(name: String, polled: Bool)
  /// `FDSTOREREMOVE=1` and `FDNAME=` (236): close all descriptors kept under this name.
  case removeDescriptors(name: String)

  /// A field that has no case here, such as a private one: `X_` and your namespace, so that it stays one. The name
  /// is of A–Z, 0–9 and `_` and not one of the above; the value has no control characters.
  case custom(name: String, value: String)

  /// A reload that begins now: ``reloading(at:)`` with the time of this call. Take it after the signal arrived.
  public static var reloadingNow: NotifyField { .reloading(at: MonotonicTime.now().microseconds) }
}

/// Whose messages the service manager takes, as `NotifyAccess=` in systemd.service(5).
///
/// A message from any other process is dropped with a line in the journal; its sender can't know. A `Type=` of
/// notify or notify-reload, `WatchdogSec=` and a descriptor store imply `main` where nothing is set.
public enum NotifyAccess: Sendable, Hashable {
  /// No process's.
  case none
  /// The main process's.
  case main
  /// The main process's and those of the control processes of `ExecStartPre=`, `ExecReload=` and so on.
  case exec
  /// Every process's in the unit's control group.
  case all
}
