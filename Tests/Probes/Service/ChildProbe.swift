// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Glibc

/// Starts a child from a thread of Swift's pool that says what it has inherited, and then only waits.
///
///     raw      by posix_spawn(3) as it is
///     helper   in `ChildProcess.withUnblockedSignals`, with `childEnvironment()`
func startChild(_ way: String) async throws {
  let program = CommandLine.arguments[0]
  await Task.detached {
    let environment = ServiceEnvironment.current
    let variables = way == "helper" ? environment.childEnvironment() : environment.variables
    let words: [String] = [program, "inherited"]
    let arguments = words.map { strdup($0) } + [nil]
    let lines = variables.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + lines { free(text) } }
    let start = { () -> Int32 in
      var pid: pid_t = 0
      return posix_spawn(&pid, program, nil, nil, arguments, lines)
    }
    let failure = way == "helper" ? ChildProcess.withUnblockedSignals(start) : start()
    if failure != 0 { say("posix_spawn: \(failure)") }
  }.value
  try NotifySocket(address: ServiceEnvironment.current.notifySocket).send([.ready])
  while true { try await Task.sleep(for: .seconds(3600)) }
}

/// The child. Not a shell: dash empties its signal mask.
func sayWhatIsInherited() {
  var mask = sigset_t()
  pthread_sigmask(SIG_BLOCK, nil, &mask)
  let own = ServiceEnvironment.ownVariables.filter { getenv($0) != nil }.sorted()
  say("child: SIGTERM \(sigismember(&mask, SIGTERM) == 1 ? "blocked" : "free"), variables \(own)")
  // Whose disposition of SIGTERM is the default.
  let words: [String] = ["sleep", "infinity"]
  execvp("sleep", words.map { strdup($0) } + [nil])
  say("exec: \(errno)")
}
