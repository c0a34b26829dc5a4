// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What the daemon says of itself beside its state, and when that is published: when it changes, at most once a second.
struct DaemonStatus: Sendable {
  private static let interval = Duration.seconds(1)
  private static let limit = 200

  /// On one line.
  private(set) var text: String?
  private var published: String?
  private var lastPublished: MonotonicTime?
  /// When the text is to be published; the distant future: it has been.
  private(set) var deadline = MonotonicTime.distantFuture

  /// The last one that is set within a second is the one that is published.
  mutating func set(_ new: String?, at now: MonotonicTime) {
    text = new.map(Self.cut)
    let isNews = text != published
    deadline =
      isNews ? max(now, lastPublished?.advanced(by: Self.interval) ?? now) : .distantFuture
  }

  /// What is to be published now; `nil`: nothing is.
  mutating func take(at now: MonotonicTime) -> String?? {
    guard deadline <= now else { return nil }
    (published, lastPublished, deadline) = (text, now, .distantFuture)
    return .some(text)
  }

  /// systemd shows one line, and keeps no more of it than fits.
  private static func cut(_ text: String) -> String {
    var line = VisibleText.line(text)
    while line.utf8.count > limit { line.removeLast() }
    return line
  }
}
