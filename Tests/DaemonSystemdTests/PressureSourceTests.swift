// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

@Suite struct PressureSourceTests {
  private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  // MARK: Variables

  private func watch(_ variables: [String: String]) throws -> PressureWatch? {
    try ServiceEnvironment(variables).pressureWatch
  }

  @Test func theServiceManagersVariablesCount() throws {
    let memory = try #require(
      try watch([
        "MEMORY_PRESSURE_WATCH": "/sys/fs/cgroup/system.slice/a.service/memory.pressure",
        "MEMORY_PRESSURE_WRITE": "c29tZSAyMDAwMDAgMjAwMDAwMAA=",
      ]))
    #expect(memory.path == "/sys/fs/cgroup/system.slice/a.service/memory.pressure")
    #expect(memory.write == PressureWatch.trigger && !memory.isOff)
    let off = try watch(["MEMORY_PRESSURE_WATCH": "/dev/null", "MEMORY_PRESSURE_WRITE": "not read"])
    #expect(off?.isOff == true)
    #expect(try watch([:]) == nil)
  }

  /// Off is off, whatever there would be to fall back to; the own control group's is watched where it can be.
  @Test func offMeansOff() throws {
    func hasSource(_ variables: [String: String], _ isUsed: Bool = true) -> Bool {
      var configuration = LifecycleConfiguration(systemd: .off)
      if isUsed { configuration.systemd.inputs = [.memoryPressure] }
      configuration.systemd.environment = ServiceEnvironment(variables)
      let integration = ServiceIntegration(configuration, isSupervised: false)
      return integration.sources.contains { $0 is PressureSource }
    }
    #expect(hasSource(["MEMORY_PRESSURE_WATCH": "/run/x"]))
    #expect(!hasSource(["MEMORY_PRESSURE_WATCH": "/run/x"], false))
    #expect(!hasSource(["MEMORY_PRESSURE_WATCH": "/dev/null"]))
    #expect(try hasSource([:]) == (PressureWatch.ownCgroup() != nil))
  }

  // MARK: /proc/self/cgroup

  @Test func theUnifiedPathIsFound() throws {
    let mixed = "9:name=systemd:/\n1:cpu:/a\n0::/system.slice/a:b.service\n"
    #expect(
      try PressureWatch.path(inCgroupFile: Self.bytes(mixed)) == "/system.slice/a:b.service")
    #expect(try PressureWatch.path(inCgroupFile: Self.bytes("1:cpu:/a\n")) == nil)
    #expect(try PressureWatch.path(inCgroupFile: []) == nil)
  }

  @Test(arguments: [
    ("0::/a.slice/b\n", ["/sys/fs/cgroup/a.slice/b", "/sys/fs/cgroup"]),
    ("0::/\n", ["/sys/fs/cgroup"]), ("0::/../b\n", []), ("1:cpu:/a\n", []),
  ])
  func theGroupsOwnFolderIsLikelierThanTheRoot(file: String, folders: [String]) throws {
    let path = try PressureWatch.path(inCgroupFile: Self.bytes(file))
    #expect(PressureWatch.folders(path) == folders)
  }

  @Test func aFileOfTheKernelsIsReadWhole() throws {
    #expect(try readProcFile("/proc/sys/kernel/ostype") == Self.bytes("Linux\n"))
  }

  @Test(arguments: ["0::", "0::a", "0:", "x::/", ":cpu:/", "\0"])
  func aMalformedCgroupFileIsAnError(text: String) {
    #expect(throws: SystemdError.self) {
      try PressureWatch.path(inCgroupFile: Self.bytes(text))
    }
  }
}
