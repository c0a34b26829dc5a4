// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

extension Duration {
  /// `0.4 ms`, `40 ms`, `1.2 s`, `90 s`: rounded down; a negative one is `0 ms`.
  package var forReading: String {
    let microseconds = max(0, saturatedNanoseconds) / 1000
    if microseconds < 1000 { return microseconds < 100 ? "0 ms" : "0.\(microseconds / 100) ms" }
    let milliseconds = microseconds / 1000
    if milliseconds < 1000 { return "\(milliseconds) ms" }
    let tenth = milliseconds / 100 % 10
    return tenth == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds / 1000).\(tenth) s"
  }
}
