// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Glibc

/// Starts a child from a thread of Swift's pool that says what it has inherited, and then only waits.
///
///     raw      by posix_spawn(3) as it is
///     helper   by `ChildProcess.spawn`
func startChild(_ way: String) async throws {
  let program = CommandLine.arguments[0]
  try await Task.detached {
    if way == "helper" {
      _ = try ChildProcess.spawn(program, ["inherited"])
    } else {
      var pid: pid_t = 0
      let words: [String] = [program, "inherited"]
      let arguments = words.map { strdup($0) } + [nil]
      defer { for argument in arguments { free(argument) } }
      let failure = posix_spawn(&pid, program, nil, nil, arguments, environ)
      if failure != 0 { say("posix_spawn: \(failure)") }
    }
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
