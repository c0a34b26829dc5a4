// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

extension HostingPlatform {
  /// What shows that this process is in a container; `nil` where nothing does.
  ///
  /// - Parameter root: The root directory, for tests.
  static func containerSign(
    _ environment: ServiceEnvironment, processID: Int32 = getpid(), root: String = ""
  ) -> String? {
    // It is no init, so it has a process tree of its own.
    if processID == 1, (try? environment.isMainProcess) != true { return "the daemon is process 1" }
    // Docker makes the one, Podman the other, also where another process is the first.
    for file in ["/.dockerenv", "/run/.containerenv"] where access(root + file, F_OK) == 0 {
      return "\(file) is there"
    }
    // systemd's "Container Interface", which Podman follows.
    if environment["container"]?.isEmpty == false { return "$container is set" }
    // What `--init` puts before the daemon.
    let first = (try? readProcFile(root + "/proc/1/comm")) ?? []
    let name = String(decoding: first.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    let inits = ["docker-init", "podman-init", "catatonit", "tini", "dumb-init"]
    return inits.contains(name) ? "process 1 is \(name)" : nil
  }

  /// A sentence about a shell that is process 1, has started this process and does not handle SIGTERM; `nil` without one.
  static func shellProblem(parent: Int32 = getppid(), root: String = "") -> String? {
    func read(_ file: String) -> String {
      String(decoding: (try? readProcFile("\(root)/proc/1/\(file)")) ?? [], as: UTF8.self)
    }
    let shells = ["sh", "ash", "bash", "dash", "ksh", "zsh", "busybox"]
    guard parent == 1, let first = read("cmdline").split(separator: "\0").first,
      let name = first.split(whereSeparator: { "/-".contains($0) }).last.map(String.init),
      shells.contains(name)
    else { return nil }
    let mask = read("status").split(separator: "\n").first { $0.hasPrefix("SigCgt:\t") }
    let caught = mask.flatMap { UInt64($0.dropFirst(8), radix: 16) } ?? 0
    return caught & 1 << (SIGTERM - 1) != 0
      ? nil
      : "Process 1 is \(name), which passes no SIGTERM on: start the daemon with exec, or a stop saves nothing."
  }
}
