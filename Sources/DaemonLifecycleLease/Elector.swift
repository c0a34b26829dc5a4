// SPDX-License-Identifier: Apache-2.0
import CLease
import CLinux
import DaemonSystemd

/// The running command of a lease: its output and its end. One thread at a time uses it.
///
/// Its parent is a guard process (`CLease.h`), which ends the command and all processes that it has started when the
/// daemon requests that or is dead.
final class Elector {
  enum Event {
    /// It has printed its line, with this token.
    case line(String)
    /// A sentence: it prints more than its line.
    case excess(String)
    /// The problem, and the part of its sentence that may differ each time.
    case problem(String, detail: String = "")
    /// The command has ended, asked or not, or could not be run. Processes that it has left may still be ending.
    case ended(String, detail: String = "")
    /// No process of it is left.
    case gone
  }

  /// How long all its processes have to end after SIGTERM.
  static let patience = Duration.milliseconds(Int64(CLEASE_PATIENCE))
  private static let longestLine = 1024
  /// How long its output is not read after it has printed more than its line, which may be a flood.
  private static let pause = Duration.milliseconds(100)
  /// How long it may run after closing its output without a line. As a rule it ends at once, and its status says more.
  private static let silence = Duration.milliseconds(200)

  private let lease: Lease
  private let name: String
  private let guardian: pid_t
  /// An epoll(7) descriptor, which is readable when there are events. Descriptors leave the set before they are closed:
  /// a forked child may have them open.
  private let poll: Int32
  /// Readable when the guard has ended.
  private let end: OwnedDescriptor
  private let reports: OwnedDescriptor
  /// `nil` once it is closed, or no longer read.
  private var output: OwnedDescriptor?
  /// The other end is the standard input of the guard and the command. Nothing is written: closing this one ends both,
  /// also when this object is released.
  private var input: OwnedDescriptor?
  private let inode: UInt64
  private var line: [UInt8] = []
  private var (hasGuard, hasLine, hasExcess) = (false, false, false)
  /// The number of bytes read until the line was complete.
  private var count = 0
  private(set) var isKilled = false
  /// When `read` is to be called, even if there are no events.
  private(set) var deadline = MonotonicTime.distantFuture

  init(_ lease: Lease, poll: Int32) throws(Failure) {
    guard let name = lease.command.first, !name.isEmpty else { throw Failure("it has no command") }
    (self.lease, self.name, self.poll) = (lease, VisibleText.line(name), poll)
    let problem = clease_problem()
    if problem != 0 { throw Failure(name, problem) }
    let input = try Pipe(name)
    let output = try Pipe(name)
    let reports = try Pipe(name)
    guardian = try Self.spawn(
      lease, [input.read.rawValue, output.write.rawValue, reports.write.rawValue])
    end = OwnedDescriptor(owning: clease_pidfd(guardian))
    guard end.rawValue >= 0 else {
      let error = clinux_errno()
      _ = CLinux.kill(guardian, SIGUSR1)
      waitpid(guardian, nil, 0)
      throw Failure(name, error)
    }
    inode = clease_inode(input.write.rawValue)
    self.input = input.takeWrite()
    self.reports = reports.takeRead()
    listen(to: output.read.rawValue)
    self.output = output.takeRead()
    listen(to: self.reports.rawValue)
    listen(to: end.rawValue)
  }

  deinit {
    dropOutput()
    ignore(reports.rawValue)
    ignore(end.rawValue)
  }

  /// Whether nobody has closed it.
  var hasInput: Bool { clease_inode(input?.rawValue ?? -1) == inode }

  /// Requests its end; `gone` follows.
  func finish() {
    input = nil
    _ = CLinux.kill(guardian, SIGTERM)
  }

  /// Kills it and all processes that it has started.
  func kill() {
    isKilled = true
    _ = CLinux.kill(guardian, SIGUSR1)
    _ = CLinux.kill(guardian, SIGCONT)
  }

  /// Returns the events since the last call, in order.
  func read() -> [Event] {
    var events: [Event] = []
    readReports(&events)
    readOutput(&events)
    readEnd(&events)
    return events
  }

  // MARK: Its output

  private func readOutput(_ events: inout [Event]) {
    if deadline <= .now() {
      deadline = .distantFuture
      guard let output = output?.rawValue else {
        return events.append(.problem("\(name) has closed its output without a line"))
      }
      listen(to: output)
    }
    guard deadline == .distantFuture, let descriptor = output?.rawValue else { return }
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = CLinux.read(descriptor, &bytes, bytes.count)
    if count < 0 { return }
    if count == 0 {
      dropOutput()
      if !hasLine { deadline = .after(Self.silence) }
      return
    }
    if !hasLine { addToLine(bytes[..<count], &events) } else { drop(bytes[..<count], &events) }
  }

  private func addToLine(_ bytes: ArraySlice<UInt8>, _ events: inout [Event]) {
    count += bytes.count
    line += bytes
    // Empty lines are skipped.
    line.removeFirst(line.prefix { $0 == UInt8(ascii: "\n") }.count)
    let end = line.firstIndex(of: UInt8(ascii: "\n")) ?? line.endIndex
    if end > Self.longestLine || end == line.endIndex && count > Self.longestLine {
      return fail("has printed more than \(Self.longestLine) bytes without a line", &events)
    }
    if end == line.endIndex { return }
    let text = String(validating: line[..<end], as: UTF8.self)
    guard let text, text == VisibleText.line(text) else {
      return fail("has printed a line that is no text", &events)
    }
    guard hasGuard else {
      return fail("runs without its guard, as this daemon is not started by its own name", &events)
    }
    guard let token = lease.token(in: text) else {
      let excerpt = VisibleText.excerpt(text, limit: 60)
      return fail(
        "has printed", detail: " \"\(excerpt)\", without \"\(lease.tokenKey ?? "")\"", &events)
    }
    hasLine = true
    events.append(.line(token))
    drop(line[end...].dropFirst(), &events)
    line = []
  }

  /// Stops reading, and reports that the command is of no use.
  private func fail(_ what: String, detail: String = "", _ events: inout [Event]) {
    dropOutput()
    events.append(.problem("\(name) \(what)", detail: detail))
  }

  /// Drops the output after the line, and stops reading for a while.
  private func drop(_ bytes: ArraySlice<UInt8>, _ events: inout [Event]) {
    if bytes.isEmpty { return }
    if !hasExcess, bytes.contains(where: { $0 != UInt8(ascii: "\n") }) {
      hasExcess = true
      events.append(.excess("\(name) prints more than a line, which is ignored."))
    }
    deadline = .after(Self.pause)
    if let output = output?.rawValue { ignore(output) }
  }

  private func dropOutput() {
    if let output = output?.rawValue { ignore(output) }
    output = nil
  }

  private func listen(to descriptor: Int32) {
    var event = epoll_event(events: UInt32(POLLIN), data: epoll_data_t(fd: descriptor))
    epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event)
  }

  private func ignore(_ descriptor: Int32) { epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, nil) }

  // MARK: Its end

  private func readReports(_ events: inout [Event]) {
    var report = clease_report()
    let size = MemoryLayout<clease_report>.size
    while CLinux.read(reports.rawValue, &report, size) == size {
      if report.status == CLEASE_BEGUN {
        hasGuard = true
      } else {
        events.append(ending(report))
      }
    }
  }

  /// The guard has ended. If it was killed, the processes left in its group would keep the lease.
  private func readEnd(_ events: inout [Event]) {
    var ready = pollfd(fd: end.rawValue, events: Int16(POLLIN), revents: 0)
    guard CLinux.poll(&ready, 1, 0) > 0 else { return }
    readReports(&events)
    // The number stays the group's until the guard is waited for.
    _ = CLinux.kill(-guardian, SIGKILL)
    waitpid(guardian, nil, 0)
    events += [.ended("\(name) was killed with its guard"), .gone]
  }

  private func ending(_ report: clease_report) -> Event {
    if report.error != 0 { return .ended(Failure(name, report.error).description) }
    let signal = report.status & 0x7f
    return signal == 0
      ? .ended("\(name) has ended with status", detail: " \(report.status >> 8 & 0xff)")
      : .ended("\(name) was ended by signal", detail: " \(signal)")
  }
}

// How it is started.
extension Elector {
  /// Why a command can't be run.
  struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
    init(_ name: String, _ error: Int32) {
      description = "\(name) can't be run: \(String(cString: strerror(error))) (errno \(error))"
    }
  }

  private struct Pipe: ~Copyable {
    let read, write: OwnedDescriptor

    init(_ name: String) throws(Failure) {
      var ends: [Int32] = [-1, -1]
      guard clinux_pipe(&ends) == 0 else { throw Failure(name, clinux_errno()) }
      // Above the numbers that a guard uses, which may be free in a daemon.
      let own = ends.map { clinux_duplicate($0, CLEASE_REPORTS + 1) }
      let error = clinux_errno()
      let isWhole = !own.contains(-1)
      for end in isWhole ? ends : ends + own { close(end) }
      guard isWhole else { throw Failure(name, error) }
      read = OwnedDescriptor(owning: own[0])
      write = OwnedDescriptor(owning: own[1])
    }

    consuming func takeRead() -> OwnedDescriptor {
      clease_never_wait(read.rawValue)
      return read
    }
    consuming func takeWrite() -> OwnedDescriptor { write }
  }

  /// Starts a guard with the given descriptors as 0, 1 and `CLEASE_REPORTS`, in a process group of its own, with no
  /// signal blocked or ignored: a guard that can't be followed must end at the first signal.
  private static func spawn(
    _ lease: Lease, _ descriptors: [Int32]
  ) throws(Failure) -> pid_t {
    let value = "\(getpid()):\(clease_inode(descriptors[2]))"
    let variables = lease.environment.childEnvironment(adding: [CLEASE_VARIABLE: value])
    let arguments = (["lease guard"] + lease.command).map { strdup($0) } + [nil]
    let texts = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in arguments + texts { free(text) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, descriptor) in zip([0, 1, CLEASE_REPORTS], descriptors) {
      posix_spawn_file_actions_adddup2(&actions, descriptor, number)
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var process: pid_t = 0
    let error = posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments, texts)
    if error != 0 { throw Failure("/proc/self/exe", error) }
    return process
  }
}
