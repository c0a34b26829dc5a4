// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// What the other tests build on.
@Suite("Machine", .machines, .describesUnits) struct HarnessTests {
  @Test(arguments: Release.selected)
  func itIsTheSystemdOfItsRelease(_ release: Release) async throws {
    try await release.test { machine in
      let version = try await machine.expect("systemctl", "--version")
      #expect(version.hasPrefix("systemd \(machine.systemd) "))
      #expect(try await machine.expect("cat", "/proc/1/comm") == "systemd")
    }
  }

  /// Nobody else would end it.
  @Test(arguments: Release.selected)
  func aCommandIsEndedAtItsLimit(_ release: Release) async throws {
    try await release.test { machine in
      let mark = "3600.\(machine.number)"
      await #expect(throws: TestFailure.self) {
        _ = try await machine.run("sleep", mark, within: .seconds(1))
      }
      let script = "exec sleep $1"
      let line = try await machine.machine.firstLine(of: script, [mark], within: .seconds(1)) { $0 }
      #expect(line == nil)
      let alive = try await machine.shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
      #expect(!alive.text.contains(mark))
    }
  }
}
