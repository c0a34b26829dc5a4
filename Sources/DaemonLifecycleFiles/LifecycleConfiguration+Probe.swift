// SPDX-License-Identifier: Apache-2.0
import CLinux
public import DaemonLifecycle

extension LifecycleConfiguration {
  /// Answers a probe of a container platform and exits, if the arguments request that: for an image without a shell.
  ///
  /// ```swift
  /// configuration.interfaces += [
  ///   .readinessFile("/run/poller/ready"), .livenessFile("/run/poller/alive"),
  /// ]
  /// configuration.exitIfProbed(by: CommandLine.arguments)
  /// // readinessProbe: { exec: { command: [/mydaemon, --probe, ready] } }
  /// // livenessProbe: { exec: { command: [/mydaemon, --probe, alive] } }
  /// ```
  ///
  /// `--probe ready` succeeds while the readiness file exists, `--probe alive` while the liveness file is not older
  /// than a minute. It prints a sentence, and exits with 0 or 1; with 64 (EX_USAGE) when there is no such probe or
  /// file. Call it before the daemon opens or creates anything, with the configuration that the daemon has. Without
  /// `--probe` among the arguments it does nothing.
  ///
  /// - Parameter arguments: The arguments of the command line.
  public func exitIfProbed(by arguments: [String]) {
    guard let option = arguments.firstIndex(where: { $0 == "--probe" || $0.hasPrefix("--probe=") })
    else { return }
    let (code, sentence) = answer(
      arguments[option] == "--probe"
        ? arguments.dropFirst(option + 1).first ?? ""
        : String(arguments[option].dropFirst("--probe=".count)))
    // The output may have no reader.
    _ = clinux_write(STDOUT_FILENO, sentence + "\n", sentence.utf8.count + 1)
    exit(code)
  }

  /// The status and the sentence of a probe.
  func answer(_ probe: String) -> (code: Int32, sentence: String) {
    switch probe {
    case "ready":
      guard let path = file("readiness file") else {
        return (64, "No readiness file with an absolute path is configured.")
      }
      if let problem = look(at: path).problem { return (1, "not ready: \(problem)") }
      return (0, "ready: \(path) exists")
    case "alive":
      guard let path = file("liveness file") else {
        return (64, "No liveness file with an absolute path is configured.")
      }
      let file = look(at: path)
      if let problem = file.problem { return (1, "not alive: \(problem)") }
      // The clock may have been set back since.
      let isAlive = -60...60 ~= file.age
      return (isAlive ? 0 : 1, "\(isAlive ? "alive" : "not alive"): \(path) is \(file.age) s old")
    default: return (64, "\"\(probe)\" is not a probe: write --probe ready or --probe alive.")
    }
  }

  /// The path of the last file of this kind; `nil` for a relative one, which the daemon refuses.
  private func file(_ kind: String) -> String? {
    let path = interfaces.all.last { $0.kind == kind }?.subject
    return path?.utf8.first == UInt8(ascii: "/") ? path : nil
  }

  /// The age of a file in seconds, and the problem if there is no regular file.
  private func look(at path: String) -> (age: Int, problem: String?) {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      let code = clinux_errno()
      return (
        0, code == ENOENT ? "there is no \(path)" : "\(path): \(String(cString: strerror(code)))"
      )
    }
    guard status.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) else {
      return (0, "\(path) is not a file")
    }
    // A file may have any time.
    let (age, overflows) = time(nil).subtractingReportingOverflow(status.st_mtim.tv_sec)
    return (overflows ? .max : age, nil)
  }
}
