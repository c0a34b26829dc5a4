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
    let memory = try PressureWatch.configured(for: .memory, variables: variables)
    #expect(memory?.path == "/sys/fs/cgroup/system.slice/a.service/memory.pressure")
    #expect(memory?.write == PressureWatch.trigger)
    let io = try PressureWatch.resolve(for: .io, variables: variables, fallsBack: true)
    #expect(io?.isOff == true, "off is off, whatever there would be to fall back to")
    #expect(try PressureWatch.configured(for: .cpu, variables: variables) == nil)
    #expect(try PressureWatch.resolve(for: .cpu, variables: variables, fallsBack: false) == nil)
  }

  @Test func withoutVariablesThereIsAFallback() throws {
    let watch = try #require(
      try PressureWatch.resolve(for: .memory, variables: [:], fallsBack: true))
    #expect(watch.write == Self.bytes("some 200000 2000000\0"))
    let own = try PressureWatch.ownCgroup(for: .memory)
    #expect(watch == own ?? .systemWide(for: .memory))
    #expect(PressureWatch.systemWide(for: .io).path == "/proc/pressure/io")
  }

  @Test(arguments: ["", "relative", "memory.pressure", " /a"])
  func aPathThatIsNotAbsoluteIsRefused(path: String) {
    #expect(throws: SystemdError.self) {
      try PressureWatch.configured(for: .memory, variables: ["MEMORY_PRESSURE_WATCH": path])
    }
  }

  @Test(arguments: ["c", "c29", "!!!!", "c29t=ZSA", "===="])
  func bytesThatAreNotBase64AreRefused(text: String) {
    #expect(throws: SystemdError.self) {
      try PressureWatch.configured(
        for: .cpu, variables: ["CPU_PRESSURE_WATCH": "/a", "CPU_PRESSURE_WRITE": text])
    }
  }

  // MARK: /proc/self/cgroup

  @Test func theUnifiedPathIsFound() throws {
    let mixed = "9:name=systemd:/\n1:cpu:/a\n0::/system.slice/a:b.service\n"
    #expect(
      try PressureCgroup.path(inCgroupFile: Self.bytes(mixed))
        == Self.bytes("/system.slice/a:b.service"))
    #expect(try PressureCgroup.path(inCgroupFile: Self.bytes("1:cpu:/a\n")) == nil)
    #expect(try PressureCgroup.path(inCgroupFile: []) == nil)
  }

  @Test(arguments: ["0::", "0::a", "0:", "x::/", ":cpu:/", "\0"])
  func aMalformedCgroupFileIsSaid(text: String) {
    #expect(throws: SystemdError.self) {
      try PressureCgroup.path(inCgroupFile: Self.bytes(text))
    }
  }

  // MARK: mountinfo

  private static let other = "23 28 0:21 / /proc rw,nosuid - proc proc rw\n"

  @Test(arguments: [
    ("/a/b", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw", "/sys/fs/cgroup/a/b"),
    ("/a", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate", "/sys/fs/cgroup/a"),
    ("/", "30 23 0:26 / /sys/fs/cgroup rw a:1 b:2 - cgroup2 none rw", "/sys/fs/cgroup"),
    ("/a/b", "30 23 0:26 /a /mnt rw - cgroup2 none rw", "/mnt/b"),
    ("/a", "30 23 0:26 /a /mnt rw - cgroup2 none rw", "/mnt"),
    ("/a", "30 23 0:26 / / rw - cgroup2 none rw", "/a"),
    ("/a", "30 23 0:26 / /with\\040space\\134 rw - cgroup2 none rw", "/with space\\/a"),
    ("/a", "30 23 0:26 / /one rw - cgroup2 n rw\n31 30 0:26 / /two rw - cgroup2 n rw", "/two/a"),
  ])
  func theFolderIsWhereTheMountShowsIt(path: String, lines: String, folder: String) throws {
    let found = try PressureCgroup.folder(
      of: Self.bytes(path), inMountInfo: Self.bytes(Self.other + lines + "\n"))
    #expect(found == folder)
  }

  @Test(arguments: [
    ("/a", ""), ("/../b", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
    ("/ab", "30 23 0:26 /a /mnt rw - cgroup2 none rw"),
    ("/", "30 23 0:26 /a /mnt rw - cgroup2 none rw"),
    ("/a", "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"),
  ])
  func aGroupThatNoMountShowsIsNone(path: String, lines: String) throws {
    #expect(
      try PressureCgroup.folder(
        of: Self.bytes(path), inMountInfo: Self.bytes(Self.other + lines)) == nil)
  }

  @Test(arguments: [
    "30", "30 23 0:26 / /sys rw - cgroup2", "30 23 0:26 / /sys rw a b c d e",
    "30 23 0:26 / /s\\04 rw - cgroup2 none rw", "30 23 0:26 / /s\\777 rw - cgroup2 none rw",
    "30 23 0:26 / sys rw - cgroup2 none rw",
  ])
  func aMalformedMountIsSaid(line: String) {
    #expect(throws: SystemdError.self) {
      try PressureCgroup.folder(of: Self.bytes("/a"), inMountInfo: Self.bytes(line))
    }
  }
}

/// Anything at all is read or refused with a sentence; nothing crashes.
@Suite struct PressureFuzzTests {
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
      let watch = try PressureWatch.configured(
        for: .cpu, variables: ["CPU_PRESSURE_WATCH": "/a", "CPU_PRESSURE_WRITE": text])
      _ = try PressureWatch.configured(for: .io, variables: ["IO_PRESSURE_WATCH": text])
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
      #expect(path.map { $0.first == UInt8(ascii: "/") && !$0.contains(10) } ?? true)
    }
  }

  @Test func mountInfos() {
    let good = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 none rw"
    let pieces = [
      good, good, "\n", "\n", "\n", " - ", "cgroup2 ", "/a ", "\\040", "\\", "\\9", "30 23 0:26 ",
      "rw x",
    ]
    generate(seed: 3, pieces: pieces) { input throws(SystemdError) in
      let folder = try PressureCgroup.folder(of: Array("/a/b".utf8), inMountInfo: input)
      #expect(folder.map { $0.hasPrefix("/") } ?? true)
    }
  }
}
