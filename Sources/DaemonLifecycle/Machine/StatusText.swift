// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The daemon's own status text, which is published when it changes: at most once a second, and before the end of a
/// transition, whose status has it.
struct StatusText: Sendable {
  private static let interval = Duration.seconds(1)
  private static let limit = 200

  /// The text, on one line.
  private(set) var text: String?
  private var published: String?
  private var lastPublished: MonotonicTime?
  /// The time at which the text is to be published; the distant future when it has been.
  private(set) var deadline = MonotonicTime.distantFuture

  /// Sets the text. Of several within a second the last one is published.
  mutating func set(_ new: String?, at now: MonotonicTime) {
    text = new.map { Self.cut($0.unicodeScalars) }
    let isChanged = text != published
    deadline =
      isChanged ? max(now, lastPublished?.advanced(by: Self.interval) ?? now) : .distantFuture
  }

  /// Returns the text that is to be published now; `nil` when there is none.
  ///
  /// - Parameter isDue: Whether it is to be published although there was another within the last second.
  mutating func take(at now: MonotonicTime, isDue: Bool = false) -> String?? {
    guard deadline <= now || isDue && deadline != .distantFuture else { return nil }
    (published, lastPublished, deadline) = (text, now, .distantFuture)
    return .some(text)
  }

  /// Cuts the text to the size that systemd shows. No more of it is read, since the core's lock is held.
  static func cut(_ text: some Sequence<Unicode.Scalar>) -> String {
    var line = VisibleText.line(String(String.UnicodeScalarView(text.prefix(limit))))
    while line.utf8.count > limit { line.removeLast() }
    return line
  }
}
