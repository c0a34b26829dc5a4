// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import Foundation
import Testing

@testable import DaemonSystemd

/// Serialized: one of them changes what this process ignores.
@Suite(.serialized) struct ChildProcessTests {
  /// What a child writes until it ends.
  private static func output(
    _ start: (_ pipe: Int32) throws -> Int32
  ) throws -> (text: String, status: Int32) {
    var ends: [Int32] = [-1, -1]
    try #require(clinux_pipe(&ends) == 0)
    let reader = OwnedDescriptor(owning: ends[0])
    let pid: Int32
    do {
      let writer = OwnedDescriptor(owning: ends[1])
      pid = try start(writer.rawValue)
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(reader.rawValue, &buffer, buffer.count)
      if count < 0, clinux_errno() == EINTR { continue }
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, clinux_errno() == EINTR {}
    return (String(decoding: bytes, as: UTF8.self), status)
  }

  /// A line of /proc/self/status as a bit set: bit n - 1 is signal n.
  private static func signals(_ name: String, in status: String) throws -> UInt64 {
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):\t") })
    return try #require(UInt64(line.dropFirst(name.count + 2), radix: 16))
  }

  private static func helperStatus() throws -> String {
    try output { try ChildProcess.spawn("/bin/cat", ["/proc/self/status"], descriptors: [1: $0]) }
      .text
  }

  /// As most code does it: nothing said about signals.
  private static func plainSpawn(_ output: Int32) throws -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    var pid: pid_t = 0
    let arguments = ["/bin/cat", "/proc/self/status"].map { (text: String) in strdup(text) }
    defer { for argument in arguments { free(argument) } }
    let failure = posix_spawn(&pid, "/bin/cat", &actions, nil, arguments + [nil], nil)
    try #require(failure == 0)
    return pid
  }

  private static func onDispatch<T: Sendable>(_ body: @escaping @Sendable () throws -> T)
    async throws -> T
  {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
    }
  }

  private let term = UInt64(1) << (SIGTERM - 1)

  // MARK: Signals

  /// The problem, so that it is noticed should it go away one day.
  @Test func aPlainChildOfAPoolThreadStartsWithSIGTERMBlocked() async throws {
    let dispatch = try await Self.onDispatch { try Self.output(Self.plainSpawn).text }
    #expect(try Self.signals("SigBlk", in: dispatch) & term != 0)
    let pool = try await Task.detached { try Self.output(Self.plainSpawn).text }.value
    #expect(try Self.signals("SigBlk", in: pool) & term != 0)
  }

  @Test func aChildOfTheHelperHasNothingBlocked() async throws {
    let dispatch = try await Self.onDispatch { try Self.helperStatus() }
    #expect(try Self.signals("SigBlk", in: dispatch) == 0)
    let pool = try await Task.detached { try Self.helperStatus() }.value
    #expect(try Self.signals("SigBlk", in: pool) == 0)
  }

  @Test func aChildOfTheHelperIgnoresNothing() throws {
    let before = signal(SIGWINCH, SIG_IGN)
    defer { signal(SIGWINCH, before) }
    let winch = UInt64(1) << (SIGWINCH - 1)
    let plain = try Self.output(Self.plainSpawn).text
    #expect(try Self.signals("SigIgn", in: plain) & winch != 0)
    #expect(try Self.signals("SigIgn", in: Self.helperStatus()) & winch == 0)
  }

  @Test func theRecipeForOtherWaysUnblocks() async throws {
    let status = try await Self.onDispatch {
      try Self.output { pipe in try ChildProcess.withUnblockedSignals { try Self.plainSpawn(pipe) }
      }.text
    }
    #expect(try Self.signals("SigBlk", in: status) == 0)
    // The thread has its mask back.
    let after = try await Self.onDispatch {
      ChildProcess.withUnblockedSignals {}
      return try Self.output(Self.plainSpawn).text
    }
    #expect(try Self.signals("SigBlk", in: after) & term != 0)
  }

  // MARK: Arguments, environment, descriptors

  @Test func argumentsAndVariablesArriveAsTheyAre() throws {
    let script = "printf '%s|' \"$@\" \"$A\" \"$PATH\""
    let (text, status) = try Self.output {
      try ChildProcess.spawn(
        "/bin/sh", ["-c", script, "sh", "a b", "", "$(x)", "ü\n"],
        environment: ["A": "x=y", "PATH": "/p"],
        descriptors: [1: $0])
    }
    #expect(text == "a b||$(x)|ü\n|x=y|/p|")
    #expect(status == 0)
  }

  @Test func descriptorsGetTheirNumbersAlsoWhenTheySwap() throws {
    let files = try ["three", "four"].map { try memory($0) }
    defer { for file in files { close(file) } }
    let (text, _) = try Self.output { pipe in
      // Numbers of this process that are targets at the same time.
      try ChildProcess.spawn(
        "/bin/sh", ["-c", "cat /proc/self/fd/3 /proc/self/fd/4"],
        descriptors: [1: pipe, 3: files[0], 4: files[1]])
    }
    #expect(text == "threefour")
    let low = min(files[0], files[1])
    let high = max(files[0], files[1])
    let (swapped, _) = try Self.output { pipe in
      try ChildProcess.spawn(
        "/bin/sh", ["-c", "cat /proc/self/fd/\(low) /proc/self/fd/\(high)"],
        descriptors: [1: pipe, low: high, high: low])
    }
    #expect(swapped == (low == files[0] ? "fourthree" : "threefour"))
  }

  @Test func whatCannotBeStartedIsAnError() {
    #expect(throws: SystemdError.system("start /nowhere", errno: ENOENT)) {
      try ChildProcess.spawn("/nowhere")
    }
    #expect(throws: SystemdError.self) { try ChildProcess.spawn("/bin/true", ["a\0b"]) }
    for variables in [["": "x"], ["A=B": "x"], ["A": "x\0"], ["A\0": "x"]] {
      #expect(throws: SystemdError.self) {
        try ChildProcess.spawn("/bin/true", environment: variables)
      }
    }
    for descriptors: [Int32: Int32] in [[-1: 0], [3: -1], [.max: 0]] {
      #expect(throws: SystemdError.self) {
        try ChildProcess.spawn("/bin/true", descriptors: descriptors)
      }
    }
  }

  @Test func aChildDoesNotGetWhatIsForThisProcess() {
    var variables = Dictionary(
      uniqueKeysWithValues: ServiceEnvironment.ownVariables.map { ($0, "1") })
    variables["INVOCATION_ID"] = "i"
    variables["JOURNAL_STREAM"] = "1:2"
    variables["PATH"] = "/bin"
    let environment = ServiceEnvironment(variables)
    #expect(
      environment.childEnvironment(adding: ["PATH": "/sbin"])
        == ["INVOCATION_ID": "i", "JOURNAL_STREAM": "1:2", "PATH": "/sbin"])
  }

  // MARK: Restarts

  @Test func aSuccessorGetsWhatWasStored() throws {
    let manager = try FakeServiceManager()
    let store = try NotifySocket(address: manager.address)
    for text in ["one", "two"] {
      let file = try memory(text)
      try store.store(file, named: "n-\(text)", polled: false)
      close(file)
    }
    let script = """
      LISTEN_PID=$$ exec sh -c 'test $LISTEN_PID = $$ && cat /proc/self/fd/3 /proc/self/fd/4 &&
      printf " %s %s" "$LISTEN_FDS" "$LISTEN_FDNAMES"'
      """
    let (text, status) = try Self.output { pipe in
      try manager.withSuccessor { variables, descriptors in
        try ChildProcess.spawn(
          "/bin/sh", ["-c", script],
          environment: variables.merging(["PATH": "/bin:/usr/bin"]) { $1 },
          descriptors: descriptors.merging([1: pipe]) { $1 })
      }
    }
    #expect(text == "onetwo 2 n-one:n-two")
    #expect(status == 0)
  }
}
