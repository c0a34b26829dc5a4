// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The newline that s6, dinit, OpenRC and Finit wait for: when it is written, and what is said when it can't be.
@Suite("Readiness by descriptor", .timeLimit(.minutes(5))) struct ReadinessDescriptorTests {
  private let pipe = InheritedPipe()
  private let log = Log()

  private func mock() -> MockLifecycleSubject {
    MockLifecycleSubject(
      state: .launching,
      configuration: LifecycleConfiguration(
        logging: .off, interfaces: .standard + [.readinessDescriptor(pipe.writer)]))
  }

  private func wiring(_ variables: [String: String]) -> LifecycleWiring {
    var configuration = LifecycleConfiguration()
    configuration.environment = ServiceEnvironment(variables)
    return LifecycleWiring(configuration)
  }

  // MARK: When

  @Test func aNewlineAndTheEndWhenTheLaunchHasEnded() async throws {
    let mock = mock()
    mock.on(DidFinishLaunching.self) { [pipe] _ in #expect(pipe.read() == nil) }
    try await mock.launch()
    #expect(pipe.read() == "\n")
    try await mock.send(.sighup)
    try await mock.send(.sigusr1)
    try await mock.send(.sigusr2)
    #expect(pipe.read() == "")
  }

  /// Other code has closed it, and a file of the daemon's own has its number.
  @Test(arguments: [true, false]) func anothersFileIsNotTouched(isReady: Bool) async throws {
    let mock = mock()
    let other = InheritedPipe()
    mock.on(DidFinishLaunching.self) { [pipe] _ in
      #expect(dup2(other.writer, pipe.writer) == pipe.writer)
      if !isReady { throw Failure() }
    }
    try await mock.launch()
    try await mock.waitUntilSettled()
    #expect(other.read() == nil && clinux_descriptor_flags(pipe.writer) >= 0)
    close(pipe.writer)
    close(other.writer)
  }

  @Test func theEndAloneWhenTheLaunchFails() async throws {
    let mock = mock()
    mock.on(DidFinishLaunching.self) { _ in throw Failure() }
    try await mock.launch()
    try await mock.waitUntilSettled()
    #expect(pipe.read() == "")
  }

  /// And one without systemd the variable.
  @Test func aSubjectThatNeverStartsLeavesItAlone() {
    _ = LifecycleSubject(
      configuration: LifecycleConfiguration(
        interfaces: .plain + [.readinessDescriptor(pipe.writer)]))
    var configuration = LifecycleConfiguration(interfaces: .plain)
    configuration.environment = ServiceEnvironment(["NOTIFY_FD": "\(pipe.writer)"])
    #expect(!LifecycleWiring(configuration).parts.contains { $0 is ReadinessPipeSink })
    #expect(pipe.read() == nil && clinux_descriptor_flags(pipe.writer) & FD_CLOEXEC == 0)
    close(pipe.writer)
  }

  // MARK: What it is written to

  @Test func aFullPipeIsTriedAgainAndNotWaitedFor() {
    let filled = pipe.fill()
    let sink = ReadinessPipeSink(pipe.writer) { [log] in log.add($0) }
    #expect(sink.receive(.launched) != nil)
    #expect(sink.wake { _ in } != nil)
    #expect(pipe.read()?.utf8.count == filled)
    #expect(sink.wake { _ in } == nil)
    #expect(pipe.read() == "\n" && pipe.read() == "" && log.all == [])
  }

  @Test func aPipeThatNobodyReadsIsSaidOnce() throws {
    try pipe.closeReader()
    let sink = ReadinessPipeSink(pipe.writer) { [log] in log.add($0) }
    for _ in 1...2 {
      sink.receive(.launched)
    }
    #expect(
      log.all == [
        "The init was not notified that the daemon is ready: could not write a newline: Broken pipe (errno 32)."
      ])
  }

  @Test func theDescriptorIsOursFromTheBeginning() {
    let wiring = wiring(["NOTIFY_FD": "\(pipe.writer)"])
    #expect(wiring.problems.isEmpty && !wiring.isSupervised)
    #expect(wiring.parts.contains { $0 is ReadinessPipeSink })
    #expect(clinux_descriptor_flags(pipe.writer) & FD_CLOEXEC != 0)
    // A second subject has the same environment.
    #expect(
      self.wiring(["NOTIFY_FD": "\(pipe.writer)"]).problems == [
        "Readiness is not reported to descriptor \(pipe.writer) (NOTIFY_FD): it was not inherited, or is in use"
          + " already. Have the init pass one."
      ])
    #expect(pipe.read() == nil)
    withExtendedLifetime(wiring) {}
  }

  @Test(arguments: ["0", "1", "2", "-1", "x", "3 ", "99999999999"])
  func whatIsNoNumberOfADescriptorIsSaid(_ text: String) {
    let wiring = wiring(["NOTIFY_FD": text])
    #expect(
      wiring.problems == [
        "The environment variable NOTIFY_FD is \"\(text)\", which is not the number of a descriptor above 2."
      ])
    #expect(!wiring.parts.contains { $0 is ReadinessPipeSink })
  }

  @Test func aNumberThatCannotBeUsedIsSaid() {
    let reader = dup(pipe.reader)
    let memory = clinux_memfd("file")
    let file = dup(memory)
    defer { for descriptor in [reader, memory, file] { close(descriptor) } }
    #expect(write(file, "content", 7) == 7 && lseek(file, 0, SEEK_SET) == 0)
    let cases: [(Int32, String)] = [
      (1, "it is a standard stream. Have the init pass another."),
      (-1, "it is a standard stream. Have the init pass another."),
      (1_000_000, "it is not open. Have the init pass it."),
      (reader, "it is not open for writing."),
      (file, "it is neither a pipe nor a socket. Have the init pass one."),
    ]
    for (number, reason) in cases {
      let configuration = LifecycleConfiguration(
        interfaces: .plain + [.readinessDescriptor(number)])
      #expect(
        LifecycleWiring(configuration).problems == [
          "Readiness is not reported to descriptor \(number) (readinessDescriptor): \(reason)"
        ])
    }
    // Neither written to nor closed.
    var content = [UInt8](repeating: 0, count: 16)
    #expect(read(file, &content, 16) == 7 && content[0] == UInt8(ascii: "c"))
  }

  /// It would have two owners.
  @Test func aPassedDescriptorIsRefused() {
    let passed = pipe.writer - 2  // from 3 up to it
    let wiring = wiring([
      "NOTIFY_FD": "\(pipe.writer)", "LISTEN_FDS": "\(passed)", "LISTEN_PID": "\(getpid())",
    ])
    #expect(
      wiring.problems == [
        "Readiness is not reported to descriptor \(pipe.writer) (NOTIFY_FD): it is one of the \(passed) of"
          + " LISTEN_FDS. Have the init pass another."
      ])
    #expect(clinux_descriptor_flags(pipe.writer) & FD_CLOEXEC == 0)
    close(pipe.writer)
  }

  // MARK: What other inits call NOTIFY_SOCKET

  /// Finit's was the number of a descriptor once.
  @Test(arguments: ["5", "nowhere", "vsock:2:1"])
  func aNotifySocketThatIsNoAddressIsIgnored(_ text: String) {
    let wiring = wiring(["NOTIFY_SOCKET": text, "WATCHDOG_USEC": "1000000"])
    #expect(!wiring.isSupervised && wiring.watchdogPeriod == nil)
    #expect(!wiring.parts.contains { $0 is NotifySink })
    #expect(
      wiring.problems == [
        "The environment variable NOTIFY_SOCKET is \"\(text)\", which begins neither with '/' nor '@'."
          + " It is ignored, and no service manager is notified."
      ])
  }
}

extension LifecycleWiring {
  /// That of a subject that is about to start.
  init(_ configuration: LifecycleConfiguration, isSupervised: Bool? = nil) {
    self.init(
      configuration, isSupervised: isSupervised ?? configuration.isSupervised,
      log: LifecycleLog(configuration.logging, configuration.environment, nil))
  }
}

/// A pipe whose writing end is as an init passes it: not close-on-exec. Whoever is given the writer closes it.
private final class InheritedPipe: Sendable {
  let reader: Int32
  let writer: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    clinux_pipe(&ends)
    (reader, writer) = (ends[0], dup(ends[1]))
    close(ends[1])
  }

  deinit { close(reader) }

  /// Nobody can read any more: the other end of a pipe that is closed takes its place. A child that another test starts
  /// has the reader until it executes its program.
  func closeReader() throws {
    let other = InheritedPipe()
    dup2(other.writer, reader)
    close(other.writer)
    var request = pollfd(fd: writer, events: 0, revents: 0)
    try eventually { poll(&request, 1, 0) > 0 }
  }

  /// What is in it; empty when it is and the writer is closed, and `nil` as long as there is neither.
  ///
  /// A child that another test starts may have inherited the writer, so the end itself may be long in coming.
  func read() -> String? {
    var request = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
    guard poll(&request, 1, 0) > 0 else {
      var (ours, theirs) = (stat(), stat())
      return fstat(writer, &ours) == 0 && fstat(reader, &theirs) == 0
        && ours.st_ino == theirs.st_ino
        ? nil : ""
    }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = CLinux.read(reader, &bytes, bytes.count)
    return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
  }

  /// Returns how many bytes it took.
  func fill() -> Int {
    var count = 0
    var request = pollfd(fd: writer, events: Int16(POLLOUT), revents: 0)
    let page = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    while poll(&request, 1, 0) > 0 { count += max(0, write(writer, page, page.count)) }
    return count
  }
}
