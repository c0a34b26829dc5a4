import Foundation
import Testing

@Suite("pressure of a service", .machines, .describesUnits) struct PressureServiceTests {
  /// Writes a byte into what systemd, or whoever plays it, has named to the service.
  @Test(arguments: Release.selected, ["MEMORY", "CPU", "IO"])
  func isHeardThroughAFifo(_ release: Release, _ resource: String) async throws {
    try await release.test { machine in
      let fifo = "/run/\(machine.unique("pressure"))"
      try await machine.expect("mkfifo", fifo)
      let service = try await machine.lifecycle(
        "", "Environment=\(resource)_PRESSURE_WATCH=\(fifo)")
      try await service.start()
      var last: JournalEntry?
      for _ in 1...2 {
        try await machine.expect("sh", "-c", "echo >\(fifo)")
        last = try await service.waitForMessage(
          "pressure \(resource.lowercased()): \(resource.lowercased()) pressure", after: last)
        last = try await service.waitForMessage("pressure \(resource.lowercased()) done", after: last)
      }
    }
  }

  /// Four processes for two processors, in the service's own control group.
  @Test(arguments: Release.since(261))
  func ofCPUIsHeard(_ release: Release) async throws {
    try await release.test { machine in
      let service = try await machine.lifecycle(
        "", "CPUPressureWatch=yes", "CPUPressureThresholdSec=1ms", "KillMode=control-group")
      try await service.start()
      try await load(machine, service, "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait")
      try await service.waitForMessage("pressure cpu: cpu pressure", within: .seconds(30))
    }
  }

  /// With a limit on memory it reads more than that from files, again and again.
  @Test(arguments: Release.since(254))
  func ofMemoryIsHeard(_ release: Release) async throws {
    try await release.test { machine in
      let service = try await machine.lifecycle(
        "", "MemoryPressureWatch=yes", "MemoryPressureThresholdSec=1ms", "MemoryHigh=24M")
      try await service.start()
      let old = try await limitByTheOldTree(machine)
      try await load(
        machine, service,
        """
        [ -z "\(old)" ] || echo $$ >"\(old)/cgroup.procs"
        while :; do cat /opt/machine/bin/* >/dev/null 2>&1; done
        """)
      let heard: Result<JournalEntry, any Error>
      do {
        heard = .success(
          try await service.waitForMessage("pressure memory: memory", within: .seconds(60)))
      } catch { heard = .failure(error) }
      try await service.stop()
      if !old.isEmpty {
        try await machine.wait(until: "rmdir \(old)")
        try await machine.expect("umount", (old as NSString).deletingLastPathComponent)
      }
      _ = try heard.get()
    }
  }

  /// On a host whose memory controller is in the tree of version 1 a unit's limit does nothing, and the
  /// machine makes one there; else "".
  private func limitByTheOldTree(_ machine: MachineTest) async throws -> String {
    let script = """
      ! grep -qw memory /sys/fs/cgroup/cgroup.controllers || exit 0
      mkdir -p "/run/$1"
      mount -t cgroup -o memory none "/run/$1"
      mkdir "/run/$1/$1"
      echo 24M >"/run/$1/$1/memory.limit_in_bytes"
      echo "/run/$1/$1"
      """
    return try await machine.expect(
      "sh", "-euc", script, "sh", "\(machine.release)-\(machine.machine.share.hashValue)"
        .replacing("/", with: "-"))
  }

  /// Runs a script in the service's control group until the service ends.
  private func load(_ machine: MachineTest, _ service: Service, _ script: String) async throws {
    let group = try await service.show("ControlGroup")
    try await machine.expect(
      "sh", "-c", "echo $$ >/sys/fs/cgroup\(group)/cgroup.procs; (\(script)) >/dev/null 2>&1 &")
  }

  @Test(arguments: Release.since(254))
  func offMeansOff(_ release: Release) async throws {
    try await release.test { machine in
      func watched(_ setting: String) async throws -> Bool {
        let service = try await machine.lifecycle("--pressure", "MemoryPressureWatch=\(setting)")
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
