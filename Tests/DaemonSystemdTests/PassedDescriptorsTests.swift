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

  /// Closes it, if there is one.
  private func wasThere(_ descriptor: consuming OwnedDescriptor?) -> Bool {
    switch consume descriptor {
    case .some: true
    case .none: false
    }
  }

  @Test func eachIsHandedOutOnceInOrder() throws {
    let passed = try sample()
    #expect(passed.descriptions.count == 3 && passed.names == ["a", "b"])
    var contents: [String] = []
    while let next = passed.take(named: "a") { contents.append(content(next)) }
    #expect(contents == ["0", "2"])
    let another = wasThere(passed.take(named: "a"))
    #expect(!another)
    let sealed = DescriptorKind.sealedMemory
    guard let owned = passed.takeFirst(where: { $0.kind == sealed }) else {
      Issue.record("no memory file left")
      return
    }
    let (text, flags) = (content(owned), clinux_descriptor_flags(owned.rawValue))
    #expect(text == "1" && flags == FD_CLOEXEC)
    #expect(passed.names.isEmpty)
  }

  @Test func whatIsLeftIsClosed() throws {
    var passed: PassedDescriptors? = try sample()
    let numbers = passed?.descriptions.map(\.number) ?? []
    #expect(numbers.allSatisfy { clinux_descriptor_flags($0) >= 0 })
    #expect(try passed?.closeRemaining() == ["a", "b"])
    #expect(passed?.names.isEmpty == true)
    passed = nil
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

  @Test func unknownNamesAreForgottenByTheManager() throws {
    let manager = try FakeServiceManager()
    let store = try DescriptorStore(ServiceEnvironment(manager.environment))
    for name in ["known", "old", "older"] {
      let file = try memory(name)
      try store.store(file, named: name, polled: false)
      close(file)
    }
    let passed = try manager.storedDuplicates()
    #expect(passed.names == ["known", "old", "older"])
    let known = wasThere(passed.take(named: "known"))
    #expect(known)
    #expect(try passed.closeRemaining(removingFrom: store) == ["old", "older"])
    #expect(manager.storedDescriptors.map(\.name) == ["known"])
    #expect(manager.violations == [])
  }

  @Test func aDescriptorThatIsNotOpenIsAnError() throws {
    #expect {
      try PassedDescriptors(names: ["x"], first: 1_000_000)
    } throws: { "\($0)".contains("1000000") && "\($0)".contains("not open") }
  }

  @Test func fromANumberOnTheyAreTakenOverCloseOnExec() throws {
    var (base, next) = (clinux_duplicate(0, 700), Int32(0))
    for _ in 0..<100 {
      next = clinux_duplicate(0, base + 1)
      if next == base + 1 { break }
      // Another test has that number.
      close(base)
      base = next
    }
    try #require(next == base + 1)
    try #require(dup2(0, base) == base)  // without close-on-exec, as the manager passes them
    let passed = try PassedDescriptors(names: ["p", "q"], first: base)
    #expect(passed.descriptions.map(\.number) == [base, next])
    #expect(clinux_descriptor_flags(base) == FD_CLOEXEC)
  }

  @Test func nothingPassedIsAnEmptySetEachTime() throws {
    for _ in 0..<2 {
      #expect(try PassedDescriptors.take(from: ServiceEnvironment([:])).names.isEmpty)
    }
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
      guard let greeting = passed.take(named: "greeting"), greeting.rawValue == first else {
        exit(12)
      }
      guard clinux_descriptor_flags(first) == FD_CLOEXEC else { exit(13) }
      guard (try? PassedDescriptors.take(from: environment)) == nil else { exit(14) }
      exit(greeting.rawValue == first ? 0 : 15)
    }
  }

  // MARK: Kinds

  private func kind(_ number: Int32) throws -> DescriptorKind {
    let owned = OwnedDescriptor(owning: number)
    return try DescriptorKind(of: owned.rawValue)
  }

  @Test func kindsAreTold() throws {
    var ends: [Int32] = [-1, -1]
    try #require(clinux_pipe(&ends) == 0)
    close(ends[1])
    #expect(try kind(ends[0]).use == .fifo)
    #expect(try kind(memory("x")) == .sealedMemory)
    #expect(try kind(clinux_open("/dev/null", O_RDWR | O_CLOEXEC)).description == "device")
    #expect(try kind(clinux_open("/", O_RDONLY | O_CLOEXEC)).use == .directory)
    #expect(try kind(clinux_open("/proc/self/status", O_RDONLY | O_CLOEXEC)).use == .file)
    #expect(try kind(eventfd(0, Int32(EFD_CLOEXEC))).use == nil)
    #expect(try kind(socket(AF_UNIX, CLINUX_SOCK_DGRAM, 0)).use == .datagram)
    #expect(try "\(kind(socket(AF_INET, CLINUX_SOCK_STREAM, 0)))" == "inet stream connection")
    #expect(throws: SystemdError.self) { try DescriptorKind(of: -1) }
    let listener = socket(AF_UNIX, CLINUX_SOCK_STREAM, 0)
    let name = "kind-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    try #require(
      clinux_bind_unix(listener, name, name.utf8.count, true) == 0 && listen(listener, 1) == 0)
    let kind = try kind(listener)
    #expect(kind.use == .listeningStream)
    #expect("\(kind)" == "listening unix stream socket")
  }

  @Test func aSealedMemoryFileIsFixedAndReadFromItsBeginning() throws {
    let file = OwnedDescriptor(owning: try memory("state"))
    var buffer = [UInt8](repeating: 0, count: 10)
    #expect(read(file.rawValue, &buffer, 10) == 5)
    #expect(pwrite(file.rawValue, "x", 1, 0) == -1)
    #expect(ftruncate(file.rawValue, 0) == -1)
    #expect(clinux_descriptor_flags(file.rawValue) == FD_CLOEXEC)
  }
}
