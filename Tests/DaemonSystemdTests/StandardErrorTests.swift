// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestLimits
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite struct StandardErrorTests {
  /// What Finit's services have as standard error.
  @Test func theMasterOfATerminalIsNotOpenedAgain() async throws {
    var path = [CChar](repeating: 0, count: 64)
    let master = OwnedDescriptor(owning: terminal_open(&path, path.count))
    let terminal = OwnedDescriptor(owning: clinux_open(path, O_RDWR | O_NOCTTY | O_CLOEXEC))
    var line = Array("lifecycle: all is well\n".utf8)
    #expect(StandardError.write(&line, line.count, to: master.rawValue) == line.count)

    var request = pollfd(fd: terminal.rawValue, events: Int16(POLLIN), revents: 0)
    try await eventually { poll(&request, 1, 0) == 1 }
    var arrived = [UInt8](repeating: 0, count: 100)
    let count = read(terminal.rawValue, &arrived, arrived.count)
    #expect(Array(arrived.prefix(max(count, 0))) == line)
  }
}
