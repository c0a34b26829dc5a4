// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The files behind descriptors, by which a number that other code of the process has closed and reused is told from the one
/// that was added.
///
/// An epoll set that nobody waits on: the kernel keeps a number there together with its file, and drops it when that is
/// closed. fstat(2) does not do, since all timerfd, signalfd, eventfd and epoll descriptors share one inode. Source:
/// epoll_ctl(2), epoll(7).
struct KnownFiles: ~Copyable {
  private let files: OwnedDescriptor
  /// The set's descriptor; valid as long as this value exists.
  var number: Int32 { files.rawValue }

  /// `nil` when there is no descriptor left; `errno` says why.
  init?() {
    let number = epoll_create1(Int32(bitPattern: UInt32(EPOLL_CLOEXEC)))
    if number < 0 { return nil }
    files = OwnedDescriptor(owning: number)
  }

  /// Adds what a number leads to now; returns `errno`, or 0.
  func add(_ number: Int32) -> Int32 { change(EPOLL_CTL_ADD, number) }

  func remove(_ number: Int32) { _ = change(EPOLL_CTL_DEL, number) }

  /// Whether a number still leads to what was added.
  func contains(_ number: Int32) -> Bool { change(EPOLL_CTL_MOD, number) == 0 }

  private func change(_ operation: Int32, _ number: Int32) -> Int32 {
    var nothing = epoll_event()
    return epoll_ctl(files.rawValue, operation, number, &nothing) == 0 ? 0 : clinux_errno()
  }
}
