// SPDX-License-Identifier: Apache-2.0
import CLinux
public import DaemonLifecycle

/// A text that changes with the content of a file, whatever links lead to it; `nil` if it can't be found.
private func state(of path: String) -> String? {
  var file = stat()
  guard stat(path, &file) == 0 else { return nil }
  let changed = file.st_ctim
  return "\(file.st_dev) \(file.st_ino) \(changed.tv_sec) \(changed.tv_nsec)"
}

extension LifecycleInterface {
  /// A reload whenever a file has changed, as when a Kubernetes ConfigMap is updated.
  ///
  /// ```swift
  /// configuration.interfaces.append(
  ///   .reloading(whenChanged: "/etc/mydaemon/config.json"))
  /// ```
  ///
  /// It checks the file once a second, through all links of its path, on any file system: a notification of the file
  /// would miss the links that a ConfigMap replaces. When the file has changed, and then not for a second, the daemon
  /// reloads, in the background too. A removed file counts as changed. A change that an observer's `shouldReload` does
  /// not accept is a rejected reload. A mock does not have it: `mock.send(.reload)` takes its place. A check costs up
  /// to five wake-ups of a processor: if that is too much, have a path unit of systemd send a signal.
  ///
  /// - Parameter path: The file's path, on a file system that does not hang.
  public static func reloading(whenChanged path: String) -> Self {
    // Before the daemon reads it.
    let first = state(of: path)
    return .requests(from: "a change of \(path)") { send in
      var (loaded, last) = (first, first)
      while true {
        try await Task.sleep(for: .seconds(1))
        let now = state(of: path)
        if now == last, now != loaded {
          loaded = now
          send(.reload)
        }
        last = now
      }
    }
  }
}
