// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite struct PressureSourceTests {
  private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  // MARK: Variables

  @Test func whatTheServiceManagerSaysIsTaken() throws {
    let variables = [
      "MEMORY_PRESSURE_WATCH": "/sys/fs/cgroup/system.slice/a.service/memory.pressure",
      "MEMORY_PRESSURE_WRITE": "c29tZSAyMDAwMDAgMjAwMDAwMAA=",
      "IO_PRESSURE_WATCH": "/dev/null", "IO_PRESSURE_WRITE": "not read",
    ]
    let memory = try ServiceEnvironment(variables).pressureWatch(for: .memory)
    #expect(memory?.path == "/sys/fs/cgroup/system.slice/a.service/memory.pressure")
    #expect(memory?.write == PressureWatch.trigger)
    let io = try ServiceEnvironment(variables).pressureWatch(for: .io, fallsBack: true)
    #expect(io?.isOff == true, "off is off, whatever there would be to fall back to")
    #expect(try ServiceEnvironment(variables).pressureWatch(for: .cpu) == nil)
    #expect(try ServiceEnvironment(variables).pressureWatch(for: .cpu, fallsBack: false) == nil)
  }

  @Test func withoutVariablesThereIsAFallback() throws {
    let watch = try #require(
      try ServiceEnvironment([:]).pressureWatch(for: .memory, fallsBack: true))
    #expect(watch.write == Self.bytes("some 200000 2000000\0"))
    let own = try PressureWatch.ownCgroup(for: .memory)
    #expect(watch == own ?? .systemWide(for: .memory))
    #expect(PressureWatch.systemWide(for: .io).path == "/proc/pressure/io")
  }

  @Test(arguments: ["", "relative", "memory.pressure", " /a"])
  func aPathThatIsNotAbsoluteIsRefused(path: String) {
    #expect(throws: SystemdError.self) {
      try ServiceEnvironment(["MEMORY_PRESSURE_WATCH": path]).pressureWatch(for: .memory)
    }
  }

  @Test(arguments: ["c", "c29", "!!!!", "c29t=ZSA", "===="])
  func bytesThatAreNotBase64AreRefused(text: String) {
    #expect(throws: SystemdError.self) {
      try ServiceEnvironment(["CPU_PRESSURE_WATCH": "/a", "CPU_PRESSURE_WRITE": text])
        .pressureWatch(for: .cpu)
    }
  }

  // MARK: /proc/self/cgroup

  @Test func theUnifiedPathIsFound() throws {
    let mixed = "9:name=systemd:/\n1:cpu:/a\n0::/system.slice/a:b.service\n"
    #expect(
      try PressureCgroup.path(inCgroupFile: Self.bytes(mixed))
        == "/system.slice/a:b.service")
    #expect(try PressureCgroup.path(inCgroupFile: Self.bytes("1:cpu:/a\n")) == nil)
    #expect(try PressureCgroup.path(inCgroupFile: []) == nil)
  }

  @Test(arguments: [
    ("0::/a.slice/b\n", ["/sys/fs/cgroup/a.slice/b", "/sys/fs/cgroup"]),
    ("0::/\n", ["/sys/fs/cgroup"]), ("0::/../b\n", []), ("1:cpu:/a\n", []),
  ])
  func theGroupsOwnFolderIsLikelierThanTheRoot(file: String, folders: [String]) throws {
    #expect(try PressureCgroup.folders(inCgroupFile: Self.bytes(file)) == folders)
  }

  @Test func theFoldersAreThoseOfThisProcess() throws {
    let file = try readProcFile("/proc/self/cgroup")
    #expect(try PressureCgroup.folders() == PressureCgroup.folders(inCgroupFile: file))
  }

  @Test func aFileOfTheKernelsIsReadWhole() throws {
    #expect(try readProcFile("/proc/sys/kernel/ostype") == Self.bytes("Linux\n"))
  }

  @Test(arguments: ["0::", "0::a", "0:", "x::/", ":cpu:/", "\0"])
  func aMalformedCgroupFileIsSaid(text: String) {
    #expect(throws: SystemdError.self) {
      try PressureCgroup.path(inCgroupFile: Self.bytes(text))
    }
  }
}

/// Anything at all is read or refused with a sentence; nothing crashes.
@Suite(.offThePool) struct PressureFuzzTests {
  private static func isSentence(_ error: SystemdError) -> Bool {
    error.description.hasSuffix(".") && error.description.utf8.count > 20
      && error.description.utf8.count < 2000
  }

  /// Runs `body` over strings of pieces, as the seed has it.
  private func generate(
    seed: UInt64, pieces: [String], _ body: ([UInt8]) throws(SystemdError) -> Void
  ) {
    var random = SeededGenerator(seed: seed)
    let pieces = pieces.map { Array($0.utf8) } + [[0xff], [0], [0xc3]]
    var refused = 0
    let inputs = SeededGenerator.inputs(usual: 40_000)
    for _ in 0..<inputs {
      var input: [UInt8] = []
      for _ in 0..<random.below(14) { input += pieces[random.below(pieces.count)] }
      do throws(SystemdError) {
        try body(input)
      } catch {
        refused += 1
        guard Self.isSentence(error) else {
          Issue.record("no sentence: \(error)")
          return
        }
      }
    }
    #expect(refused > 0 && refused < inputs, "the generator meets both good and bad")
  }

  @Test func variables() {
    generate(seed: 1, pieces: ["/", "dev", "null", "c29t", "ZQ==", "=", "AA", "\n", " ", "é"]) {
      input throws(SystemdError) in
      let text = String(decoding: input, as: UTF8.self)
      let variables = ["CPU_PRESSURE_WATCH": "/a", "CPU_PRESSURE_WRITE": text]
      let watch = try ServiceEnvironment(variables).pressureWatch(for: .cpu)
      _ = try ServiceEnvironment(["IO_PRESSURE_WATCH": text]).pressureWatch(for: .io)
      // What was read has no more bits than the text had digits.
      #expect((watch?.write.count ?? .max) * 4 <= input.count * 3)
    }
  }

  @Test func cgroupFiles() {
    generate(
      seed: 2, pieces: ["0::/", "\n", "1:", "cpu", ":", "/a", "/..", "0::", "99999999999:", "b"]
    ) {
      input throws(SystemdError) in
      let path = try PressureCgroup.path(inCgroupFile: input)
      #expect(path.map { $0.hasPrefix("/") && !$0.contains("\n") } ?? true)
    }
  }
}
