// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The pipe of a barrier: the service manager receives the write end, and closes it when it reads the message.
struct BarrierPipe: ~Copyable {
  let readEnd: OwnedDescriptor
  let writeEnd: OwnedDescriptor

  init() throws(SystemdError) {
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else {
      throw .system(purpose: "make a pipe for a barrier", errno: clinux_errno())
    }
    readEnd = OwnedDescriptor(owning: ends[0])
    writeEnd = OwnedDescriptor(owning: ends[1])
  }

  /// Closes the write end here, and waits until it is closed everywhere.
  consuming func wait(until deadline: MonotonicTime) throws(SystemdError) {
    let readEnd = closingWriteEnd()
    let purpose = "wait until the service manager has read the notifications"
    var ready = pollfd(fd: readEnd.rawValue, events: 0, revents: 0)
    while true {
      let count = poll(&ready, 1, deadline.milliseconds)
      if count > 0 { return }
      if count < 0, clinux_errno() != EINTR {
        throw .system(purpose: purpose, errno: clinux_errno())
      }
      if count == 0, deadline.milliseconds == 0 { throw .timedOut(purpose: purpose) }
    }
  }

  private consuming func closingWriteEnd() -> OwnedDescriptor { readEnd }
}
