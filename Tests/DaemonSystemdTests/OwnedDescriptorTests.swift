// SPDX-License-Identifier: Apache-2.0
import CLinux
import Testing

@testable import DaemonSystemd

@Suite struct OwnedDescriptorTests {
  private func isOpen(_ number: Int32) -> Bool { clinux_descriptor_flags(number) >= 0 }

  /// Its peer notices; the number may belong to another test at once. A child that another test has just forked has the
  /// descriptor too, until its exec.
  @Test func closesWithItsLifetime() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0, &ends) == 0)
    let peer = OwnedDescriptor(owning: ends[0])
    do {
      let owned = OwnedDescriptor(owning: ends[1])
      #expect(isOpen(owned.rawValue))
    }
    var polled = pollfd(fd: peer.rawValue, events: 0, revents: 0)
    #expect(poll(&polled, 1, 30_000) == 1 && polled.revents == Int16(POLLHUP))
  }

  @Test func releasedItStaysOpen() {
    let number = OwnedDescriptor(owning: eventfd(0, Int32(EFD_CLOEXEC))).release()
    #expect(isOpen(number))
    close(number)
  }
}
