// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@Suite("pressure of a service", .machines, .describesUnits) struct PressureServiceTests {
  /// It writes and reads more than its limit on memory, on a disk: there is always something to reclaim, and
  /// that takes time.
  @Test(arguments: Release.since(254))
  func ofMemoryIsReceived(_ release: Release) async throws {
    try await release.test { machine in
      let service = try await machine.lifecycle(
        "", "MemoryPressureWatch=yes", "MemoryPressureThresholdSec=1ms", "MemoryHigh=24M")
      try await service.start()
      try await withMemoryLimit(machine) { enter in
        let file = "/share/\(machine.unique("big"))"
        let join = "echo $$ >/sys/fs/cgroup\(try await service.show("ControlGroup"))/cgroup.procs"
        let load = "while :; do head -c 60M /dev/zero >\(file); cat \(file) >/dev/null; done"
        try await machine.expect("sh", "-ec", "\(join); \(enter); (\(load)) >/dev/null 2>&1 &")
        let heard = try? await service.waitForMessage("pressure: memory")
        #expect(heard != nil)
        // The load ends with it.
        try await service.stop()
        try await machine.expect("rm", file)
      }
    }
  }

  /// A unit's limit does nothing where the host has its memory controller in the tree of version 1; there it
  /// takes a control group of that tree, and `body` gets the command to enter it.
  private func withMemoryLimit(
    _ machine: MachineTest, _ body: (_ enter: String) async throws -> Void
  ) async throws {
    let controllers = try await machine.read("/sys/fs/cgroup/cgroup.controllers")
    if controllers.split(separator: " ").contains("memory") { return try await body(":") }
    // The tree is the host's: the name is one of this process.
    let tree = "/run/\(machine.unique("memory"))"
    let group = "\(tree)/\(machine.unique("daemon-lifecycle-\(getpid())"))"
    let script = """
      mkdir -p "$1"
      mount -t cgroup -o memory none "$1"
      mkdir "$2"
      echo 24M >"$2/memory.limit_in_bytes"
      """
    try await machine.expect("sh", "-euc", script, "sh", tree, group)
    let result: Result<Void, any Error>
    do { result = .success(try await body("echo $$ >\(group)/cgroup.procs")) } catch {
      result = .failure(error)
    }
    try await machine.wait(until: #"rmdir "$1" && umount "$2" && rmdir "$2""#, group, tree)
    try result.get()
  }

  /// What the unit has switched off is not watched, whatever there would be to fall back to.
  @Test(arguments: Release.since(254))
  func offMeansOff(_ release: Release) async throws {
    try await release.test { machine in
      func watched(_ setting: String) async throws -> Bool {
        let service = try await machine.lifecycle("", "MemoryPressureWatch=\(setting)")
        try await service.start()
        let pid = try await service.mainPID
        let files = try await machine.expect("sh", "-c", "readlink /proc/\(pid)/fd/*")
        try await service.stop()
        return files.contains("memory.pressure")
      }
      let (on, off) = (try await watched("yes"), try await watched("off"))
      #expect(on && !off)
    }
  }
}
