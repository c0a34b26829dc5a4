// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

/// A daemon with real commands: what each does to it, and what is left of them. A test waits until everything has closed
/// the daemon's output, which the guard and the command have as standard error.
@Suite(.timeLimit(.minutes(5)), .offThePool) struct ElectorTests {
  private func daemon(
    _ command: [String], _ behaviour: String = "usual", environment: [String: String] = [:],
    ignoring: [Int32] = []
  ) throws -> TestSupport.ChildProcess {
    try TestSupport.ChildProcess(
      built("ProbeLease"), [behaviour] + command, environment: environment, ignoring: ignoring,
      stderrToStdout: true)
  }

  /// Has the lease, and says when it gives it up.
  private static let shell = [
    "sh", "-c", "trap 'echo released >&2; exit' TERM; echo 7; while :; do sleep 0.02; done",
  ]

  @Test func itIsReleasedAfterTheSave() throws {
    let daemon = try daemon(Self.shell, "saving")
    try daemon.expect("works with 7")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    let words = daemon.output.filter { ["has", "released"].contains($0.split(separator: " ")[0]) }
    #expect(words == ["has saved with 7", "released"])
  }

  @Test func itIsGivenUpInAPause() throws {
    let daemon = try daemon(Self.shell)
    try daemon.expect("works with 7")
    daemon.send(SIGUSR1)
    try daemon.expect("has saved with 7")
    try daemon.expect("released")
    daemon.send(SIGUSR2)
    try daemon.expect("works with 7")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  /// One that ends is lost, and is run again.
  @Test func itsEndIsALoss() throws {
    let daemon = try daemon(["sh", "-c", "echo 5; sleep 0.2; kill -9 $$"])
    try daemon.expect("works with 5")
    try daemon.expect("saves with no token")
    try daemon.expect("works with 5")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  @Test(
    arguments: [
      // What a shell has started.
      "echo 5; sleep 1000; true", "sleep 1000 & echo 5; exec sleep 1000",
      // Its input ends.
      "trap '' TERM; echo 5; exec cat",
      // What leaves its group, or its session.
      "timeout 1000 sh -c 'echo 5; exec sleep 1000'; true",
      "setsid sleep 1000 & (setsid sleep 1000 &) ; echo 5; exec sleep 1000",
      // Nothing but SIGKILL ends these.
      "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; echo 5; exec cat",
      "trap '' TERM; echo 5; while :; do sleep 1; done",
      "trap '' TERM; (sleep 1000) & echo 5; exec cat",
    ], [SIGKILL, SIGTERM]
  ) func nothingIsLeftOfIt(_ script: String, _ signal: Int32) throws {
    let daemon = try daemon(["sh", "-c", script])
    try daemon.expect("works with 5")
    daemon.send(signal)
    #expect(try daemon.wait() == (signal == SIGKILL ? .signal(SIGKILL) : .status(0)))
  }

  /// These print the guard's number.
  private static let trees = [
    "echo $PPID; sleep 1000; true", "sleep 1000 & echo $PPID; exec cat",
    "trap '' TERM; (sleep 1000) & echo $PPID; exec cat",
    "export G=$PPID; exec flock $0 sh -c 'echo $G; sleep 1000; true'",
    "export G=$PPID; trap '' TERM; flock $0 sh -c 'echo $G; while :; do sleep 1; done'; true",
  ]

  private func guardian(_ daemon: TestSupport.ChildProcess) throws -> pid_t {
    let line = try daemon.expect("works with ")
    return try #require(line.split(separator: " ").last.flatMap { pid_t($0) })
  }

  /// As by the kernel where memory is short. What has a lock would keep it from the next one, and from another daemon.
  @Test(arguments: trees) func nothingIsLeftOfItWithoutItsGuard(_ script: String) throws {
    let folder = try Folder()
    let daemon = try daemon(["sh", "-c", script, folder.path("lock")])
    let first = try guardian(daemon)
    kill(first, SIGKILL)
    try daemon.expect("lifecycle: The lease probe: it is lost: sh was killed with its guard.")
    #expect(try guardian(daemon) != first)
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  /// A kernel may not list them, and the guard may have no descriptor for the list.
  @Test(arguments: trees, [SIGKILL, SIGTERM])
  func nothingIsLeftOfItWithoutAListOfChildren(_ script: String, _ signal: Int32) throws {
    let folder = try Folder()
    let noDescriptors = "prlimit --pid $PPID --nofile=0 && "
    let daemon = try daemon(["sh", "-c", noDescriptors + script, folder.path("lock")])
    _ = try guardian(daemon)
    daemon.send(signal)
    #expect(try daemon.wait() == (signal == SIGKILL ? .signal(SIGKILL) : .status(0)))
  }

  /// Somebody stops the guard again and again, and output makes the daemon look.
  @Test func thatItIsKilledIsSaidOnce() throws {
    let daemon = try daemon(["sh", "-c", "echo $PPID; exec yes"])
    let guardian = try guardian(daemon)
    let isStopped = Mutex(true)
    kill(guardian, SIGSTOP)
    DispatchQueue.global().async {
      while isStopped.withLock({ $0 && kill(guardian, SIGSTOP) == 0 }) {}
    }
    daemon.send(SIGTERM)
    let sentence =
      "lifecycle: The lease probe: its elector has not ended after SIGTERM, and is killed."
    try daemon.expect(sentence)
    try daemon.expect("lifecycle: terminate (SIGTERM")
    isStopped.withLock { $0 = false }
    kill(guardian, SIGCONT)
    _ = try daemon.wait()
    #expect(daemon.output.filter { $0 == sentence }.count == 1)
  }

  /// It is a daemon that somebody has started with the variable, perhaps another daemon for its children.
  @Test(arguments: ["", "1", "\(getpid())", "\(getpid()):0", "\(getpid()):1"])
  func aVariableMakesNoGuard(_ value: String) throws {
    let daemon = try daemon(
      ["sh", "-c", "echo 5; exec cat"], environment: ["DAEMONLIFECYCLE_LEASE_GUARD": value])
    try daemon.expect("works with 5")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  /// As by a filter of system calls. Nothing is left running, and nothing is waited for.
  @Test func aGuardThatCannotBeFollowedEnds() throws {
    let daemon = try daemon(["sh", "-c", "echo 5; exec cat"], "refused")
    try daemon.expect(
      "lifecycle: The lease probe: sh can't be run: Operation not permitted (errno 1)")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  @Test func oneThatNoDaemonHasIsSaid() throws {
    let daemon = try daemon(["sh", "-c", "echo 5; exec cat"], "alone")
    let sentence =
      "lifecycle: The lease probe: no daemon has it among its interfaces, so it is not held."
    var left: Set = ["works with no token", sentence]
    while !left.isEmpty { left.remove(try daemon.line { left.contains($0) }) }
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    #expect(daemon.output.filter { $0 == sentence }.count == 1)
  }

  @Test func theStatusShowsWhoHasPausedIt() throws {
    let manager = try FakeServiceManager()
    let daemon = try daemon(["sh", "-c", "echo 5; exec cat"], environment: manager.environment)
    try daemon.expect("works with 5")
    daemon.send(SIGUSR1)
    let status = try manager.next { $0["STATUS"]?.contains("operator, waiting for") == true }
    let cause = "(SIGUSR1 from pid \(getpid()) uid \(getuid()); the lease probe is given up)"
    #expect(status["STATUS"]?.hasSuffix(cause) == true, "\(status)")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  @Test(arguments: [
    ("/no/such/elector", "/no/such/elector can't be run: No such file or directory (errno 2)"),
    ("no-such-elector", "no-such-elector can't be run: No such file or directory (errno 2)"),
    ("/etc/passwd", "/etc/passwd can't be run: Permission denied (errno 13)"),
    ("/etc", "/etc can't be run: Permission denied (errno 13)"), ("", "it has no command"),
    ("exit 3", "sh has ended with status 3"), ("kill -9 $$", "sh was ended by signal 9"),
    ("yes no | tr -d '\\n'", "sh has printed more than 1024 bytes without a line"),
    ("printf '\\033[1m\\n'; exec cat", "sh has printed a line that is no text"),
    ("printf '\\377\\n'; exec cat", "sh has printed a line that is no text"),
    ("exec sleep 1000 >&-", "sh has closed its output without a line"),
  ]) func aBadOneIsSaid(_ script: String, _ sentence: String) throws {
    let isPath = script.hasPrefix("/") || script.hasPrefix("no") || script.isEmpty
    // A folder that can't be searched would be what is said, as execvp(3) does.
    let daemon = try daemon(
      isPath ? [script] : ["sh", "-c", script], environment: ["PATH": "/usr/bin:/bin"])
    try daemon.expect(
      "lifecycle: The lease probe: \(sentence). It is run again, after 2 s at most.")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    #expect(daemon.output.filter { $0.contains("The lease probe: ") }.count == 1)
  }

  /// An operator looks there first.
  @Test func theStatusShowsWhatIsWrongUntilItRuns() throws {
    let (manager, folder) = (try FakeServiceManager(), try Folder())
    let script = "test -e \(folder.path("works")) || exit 3; echo 5; exec cat"
    let daemon = try daemon(["sh", "-c", script], environment: manager.environment)
    let problem = "; sh has ended with status 3"
    _ = try manager.next { $0["STATUS"]?.hasSuffix(problem) == true }
    try folder.write("", to: "works")
    let status = try manager.next { $0["STATUS"]?.hasPrefix("foreground since") == true }
    #expect(status["STATUS"]?.contains(problem) == false)
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  /// Neither one that ends at once nor one that prints no line: in a second there are four of them at most.
  @Test(arguments: ["echo run >&2; echo 5", "echo run >&2; printf '\\001\\n'; exec cat"])
  func itIsNotRunMoreAndMoreOften(_ script: String) throws {
    let daemon = try daemon(["sh", "-c", script])
    try daemon.expect("run")
    let began = now()
    for _ in 1...3 { try daemon.expect("run") }
    #expect(now() - began > 0.6)
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  /// Whatever its time stamp, number or status is, and also in turns with something else.
  @Test(
    arguments: [
      ("echo run >&2; date +%s%N; exec cat", 1),
      ("echo run >&2; echo >>$0; exit $(wc -l <$0)", 1),
      (
        "echo run >&2; echo >>$0; n=$(wc -l <$0); [ $((n % 2)) = 0 ] || exit $n; echo $n; exec cat",
        2
      ),
    ] as [(String, Int)]
  ) func whatHappensAgainIsSaidOnce(_ script: String, _ count: Int) throws {
    let (manager, folder) = (try FakeServiceManager(), try Folder())
    let daemon = try daemon(
      ["sh", "-c", script, folder.path("runs")], "keyed", environment: manager.environment)
    for _ in 1...5 { try daemon.expect("run") }
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    #expect(daemon.output.filter { $0.contains("The lease probe: ") }.count == count)
    // The status has the last one.
    let words = manager.messages.compactMap { $0["STATUS"]?.split(separator: "; ") }
    let notes = words.compactMap { $0.dropFirst().first }
    #expect(Set(notes).count > 2)
  }

  @Test func moreThanALineIsIgnored() throws {
    let daemon = try daemon(["sh", "-c", "echo; echo 5; exec yes"])
    let sentence = "lifecycle: The lease probe: sh prints more than a line, which is ignored."
    var left: Set = ["works with 5", sentence]
    while !left.isEmpty { left.remove(try daemon.line { left.contains($0) }) }
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    #expect(daemon.output.filter { $0 == sentence }.count == 1)
  }

  @Test func oneThatClosesItsOutputAfterItsLineHasTheLease() throws {
    let daemon = try daemon(["sh", "-c", "echo 5; exec sleep 1000 >&-"])
    try daemon.expect("works with 5")
    daemon.send(SIGHUP)
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    #expect(daemon.output.contains("has saved with 5"))
  }

  /// A child that the daemon has forked, and that goes on, has its ends of the pipes, too.
  @Test func aForkOfTheDaemonKeepsNothing() throws {
    let daemon = try daemon(["sh", "-c", "echo 5; read -r line; sleep 0.1"], "forking")
    for _ in 1...2 {
      try daemon.expect("works with 5")
      daemon.send(SIGUSR1)
      try daemon.expect("has saved with")
      daemon.send(SIGUSR2)
    }
    try daemon.expect("works with 5")
    daemon.send(SIGKILL)
    #expect(try daemon.wait() == .signal(SIGKILL))
  }

  /// Neither that it is stopped for a while, nor the end of what it has started, is its own.
  @Test func itGoesOnAfterAStop() throws {
    let script = """
      echo 5; (sleep 0.01 &); (sleep 0.2; kill -CONT $$) & kill -STOP $$; wait
      sleep 0.1; echo goes on >&2; exec cat
      """
    let daemon = try daemon(["sh", "-c", script])
    try daemon.expect("goes on")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    #expect(daemon.output.contains("has saved with 5"))
  }

  @Test func itInheritsNothing() throws {
    let script = """
      echo $(ls /proc/self/fd) ${NOTIFY_SOCKET-none} ${DAEMONLIFECYCLE_LEASE_GUARD-none} \
      $(grep -E 'Sig(Blk|Ign)' /proc/self/status); exec cat
      """
    let daemon = try daemon(
      ["sh", "-c", script], environment: ["NOTIFY_SOCKET": "@nobody"],
      ignoring: [SIGCHLD, SIGPIPE, SIGALRM])
    // The fourth is the folder that ls reads.
    let line = try daemon.expect(
      "works with 0 1 2 3 none none SigBlk: 0000000000000000 SigIgn: ")
    // Two that posix_spawn(3) ignores are the C library's own.
    let ignored = UInt64(line.split(separator: " ").last ?? "", radix: 16)
    #expect(ignored.map { $0 & ~0x1_8000_0000 } == 0)
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
  }

  /// Without its input the elector ends; without the daemon's timer it does not.
  @Test(arguments: [("robbed", "no token"), ("untimed", "7")])
  func descriptorsThatAreLostMayBeTheLease(_ behaviour: String, _ token: String) throws {
    let daemon = try daemon(Self.shell, behaviour)
    try daemon.expect("works with 7")
    try daemon.expect("saves with \(token)")
    #expect(try daemon.wait() == .status(70))
    let sentence = "lifecycle: The lease probe: it is lost: other code has closed its input."
    #expect(daemon.output.contains(sentence) == (behaviour == "robbed"))
  }

  /// Another may be active.
  @Test(arguments: ["slow", "stuck"]) func aLossEndsWhatTakesTooLong(_ behaviour: String) throws {
    let daemon = try daemon(["sh", "-c", "echo 5; sleep 0.3"], behaviour)
    try daemon.expect("works with 5")
    try daemon.expect("lifecycle: The lease probe is lost, and ")
    #expect(try daemon.wait() == .status(70))
  }
}
