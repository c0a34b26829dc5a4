// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite struct PassedDescriptorsTests {
  /// Three memory files under "a", "b", "a"; the originals are closed.
  private func sample() throws -> PassedDescriptors {
    let files = try ["0", "1", "2"].map { try memory($0) }
    defer { for file in files { close(file) } }
    return try PassedDescriptors(duplicating: [(files[0], "a"), (files[1], "b"), (files[2], "a")])
  }

  private func content(_ descriptor: borrowing OwnedDescriptor) -> String {
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = pread(descriptor.rawValue, &buffer, 64, 0)
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
  }

  @Test func eachIsHandedOutOnceInOrder() throws {
    let passed = try sample()
    #expect(passed.descriptions.count == 3 && passed.names == ["a", "b"])
    var contents: [String] = []
    while let next = passed.takeFirst(where: { $0.name == "a" }) {
      #expect(clinux_descriptor_flags(next.rawValue) == FD_CLOEXEC)
      contents.append(content(next))
    }
    #expect(contents == ["0", "2"] && passed.names == ["b"])
    passed.closeRemaining()
    #expect(passed.names.isEmpty)
  }

  @Test func whatNobodyTakesIsClosedWithTheObject() async throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0, &ends) == 0)
    let (ours, theirs) = (ends[0], ends[1])
    defer { close(ours) }
    let hasHungUp = {
      var byte: UInt8 = 0
      return recv(ours, &byte, 1, Int32(MSG_DONTWAIT)) == 0
    }
    var passed: PassedDescriptors? = try PassedDescriptors(duplicating: [(theirs, "peer")])
    close(theirs)
    #expect(passed?.names == ["peer"] && !hasHungUp())
    passed = nil
    // A child that another test is starting may have it for a moment longer.
    try await eventually { hasHungUp() }
  }

  @Test func aDescriptorThatIsNotOpenIsAnError() throws {
    #expect {
      try PassedDescriptors(names: ["x"], first: 1_000_000)
    } throws: { "\($0)".contains("1000000") && "\($0)".contains("not open") }
  }

  /// In a process of its own, since it is done once. From a high number on: a low one may be another thread's for a
  /// moment, who closes it then.
  @Test func whatWasPassedIsTakenOnce() async {
    await #expect(processExitsWith: .success) {
      let first: Int32 = 500
      guard let file = try? OwnedDescriptor.memory(named: "passed", Array("hello".utf8)),
        dup2(file.rawValue, first) == first
      else { exit(10) }
      let environment = ServiceEnvironment([
        "LISTEN_PID": String(getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "greeting",
      ])
      guard let passed = try? PassedDescriptors.take(from: environment, first: first) else {
        exit(11)
      }
      guard let greeting = passed.takeFirst(where: { $0.name == "greeting" }),
        greeting.rawValue == first
      else {
        exit(12)
      }
      guard clinux_descriptor_flags(first) == FD_CLOEXEC else { exit(13) }
      guard (try? PassedDescriptors.take(from: environment)) == nil else { exit(14) }
      exit(greeting.rawValue == first ? 0 : 15)
    }
  }

  // MARK: Uses

  private func use(_ number: Int32) throws -> DescriptorUse? {
    let owned = OwnedDescriptor(owning: number)
    return try DescriptorUse(of: owned.rawValue)
  }

  @Test func usesAreTold() throws {
    #expect(try use(memory("x")) == .memory)
    #expect(try use(clinux_memfd("not sealed")) == nil)
    #expect(try use(clinux_open("/dev/null", O_RDWR | O_CLOEXEC)) == nil)
    #expect(try use(clinux_open("/proc/self/status", O_RDONLY | O_CLOEXEC)) == nil)
    #expect(try use(eventfd(0, Int32(EFD_CLOEXEC))) == nil)
    #expect(throws: SystemdError.self) { try DescriptorUse(of: -1) }
    for (type, connected, listening) in [
      (CLINUX_SOCK_STREAM, DescriptorUse.stream, DescriptorUse.listeningStream),
      (CLINUX_SOCK_SEQPACKET, .packets, .listeningPackets), (CLINUX_SOCK_DGRAM, .datagram, nil),
    ] as [(Int32, DescriptorUse, DescriptorUse?)] {
      #expect(try use(socket(AF_UNIX, type, 0)) == connected)
      guard let listening else { continue }
      let listener = socket(AF_UNIX, type, 0)
      let name = "use-\(getpid())-\(UInt64.random(in: 0 ... .max))"
      try #require(clinux_bind_unix(listener, name, name.utf8.count, true) == 0)
      try #require(listen(listener, 1) == 0)
      #expect(try use(listener) == listening)
    }
  }
}
