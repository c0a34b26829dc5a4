// SPDX-License-Identifier: Apache-2.0
import CLinux
import Testing

@testable import DaemonSystemd

@Suite struct OwnedDescriptorTests {
  private func isOpen(_ number: Int32) -> Bool { clinux_descriptor_flags(number) >= 0 }

  @Test func closesWithItsLifetime() throws {
    let number = eventfd(0, Int32(EFD_CLOEXEC))
    do {
      let owned = OwnedDescriptor(owning: number)
      #expect(isOpen(owned.rawValue))
    }
    #expect(!isOpen(number))
  }

  @Test func releasedItStaysOpen() {
    let number = OwnedDescriptor(owning: eventfd(0, Int32(EFD_CLOEXEC))).release()
    #expect(isOpen(number))
    close(number)
  }

  @Test func duplicateIsAnotherOne() throws {
    let owned = OwnedDescriptor(owning: eventfd(0, 0))
    let copy = try owned.duplicate()
    #expect(copy.rawValue != owned.rawValue)
    #expect(clinux_descriptor_flags(copy.rawValue) == FD_CLOEXEC)
  }
}
