// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The files behind descriptors, by which a number that other code of the process has closed and reused is told from the one
/// that was added.
///
/// An epoll set that nobody waits on: the kernel keeps a number there together with its file, and drops it when that is
/// closed. fstat(2) does not do, since all timerfd, signalfd, eventfd and epoll descriptors share one inode. Source:
/// epoll_ctl(2), epoll(7).
///
/// Its own number may be another's, too: after the first loss it is neither used nor closed.
struct KnownFiles {
  /// The set's descriptor.
  let number: Int32

  /// `nil` when there is no descriptor left; `errno` says why.
  init?() {
    number = epoll_create1(Int32(bitPattern: UInt32(EPOLL_CLOEXEC)))
    if number < 0 { return nil }
  }

  /// Adds what a number leads to now; returns `errno`, or 0.
  func add(_ number: Int32) -> Int32 { change(EPOLL_CTL_ADD, number) }

  func remove(_ number: Int32) { _ = change(EPOLL_CTL_DEL, number) }

  /// Whether a number still leads to what was added.
  func contains(_ number: Int32) -> Bool { change(EPOLL_CTL_MOD, number) == 0 }

  private func change(_ operation: Int32, _ number: Int32) -> Int32 {
    var nothing = epoll_event()
    return epoll_ctl(self.number, operation, number, &nothing) == 0 ? 0 : clinux_errno()
  }
}
