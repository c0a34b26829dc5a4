// SPDX-License-Identifier: Apache-2.0
import Foundation
package import Glibc

/// What `/proc/PID/status` says of a process: `"SigCgt"`. `nil` once it is gone.
package func processStatus(_ field: String, of pid: pid_t) -> Substring? {
  let text = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
  return text?.split(separator: "\n").first { $0.hasPrefix("\(field):\t") }?
    .dropFirst(field.count + 2)
}
