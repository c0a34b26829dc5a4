import Glibc
import Systemd

/// Starts a child from a thread of Swift's pool that says what it has inherited, and then only waits.
///
///     raw      by posix_spawn(3) as it is
///     helper   by `ChildProcess.spawn`
func startChild(_ way: String) async throws {
  // The three lines, and then the same process sleeps.
  let script = """
    grep SigBlk /proc/self/status
    env | grep -cE '^(NOTIFY_SOCKET|LISTEN_[A-Z]*|WATCHDOG_[A-Z]*|FDSTORE)='
    echo child $$
    exec sleep infinity
    """
  try await Task.detached {
    if way == "helper" {
      _ = try ChildProcess.spawn("/bin/sh", ["-c", script])
    } else {
      var pid: pid_t = 0
      let words: [String] = ["sh", "-c", script]
      let arguments = words.map { strdup($0) } + [nil]
      defer { for argument in arguments { free(argument) } }
      let failure = posix_spawn(&pid, "/bin/sh", nil, nil, arguments, environ)
      if failure != 0 { say("posix_spawn: \(failure)") }
    }
  }.value
  try NotifySocket(address: ServiceEnvironment.current.notifySocket).send([.ready])
  while true { try await Task.sleep(for: .seconds(3600)) }
}
