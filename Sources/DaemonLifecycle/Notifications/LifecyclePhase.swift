// SPDX-License-Identifier: Apache-2.0
/// A step in the delivery order: lower phases are notified first on the way up and last on the way down.
///
/// ```swift
/// extension LifecyclePhase {
///   static let database = LifecyclePhase(order: -10)
///   static let workers = LifecyclePhase(order: 10, isConcurrent: true)
/// }
/// ```
///
/// Within a phase, observers are notified in the order in which they were added, and in reverse on the way down. The
/// members of a concurrent phase are notified at the same time, so stopping them takes as long as the slowest, not as
/// long as all together. Of two phases with the same order the concurrent one is the higher.
public struct LifecyclePhase: Sendable, Hashable {
  let order: Int
  /// Whether its members are notified at the same time.
  let isConcurrent: Bool
  /// How long each hook of its members may take; `nil` for the configuration's.
  let timeout: Duration?

  /// Makes a phase. Observers of phases with the same order and concurrency are one step, even with different timeouts.
  ///
  /// - Parameters:
  ///   - order: The position among the phases. Lower phases are notified first on the way up.
  ///   - isConcurrent: Whether its members are notified at the same time. Default false.
  ///   - timeout: How long each hook of its members may take, unless a timeout was given for the observer. Default
  ///     `nil`: ``LifecycleConfiguration/hookTimeout``.
  public init(order: Int, isConcurrent: Bool = false, timeout: Duration? = nil) {
    self.order = order
    self.isConcurrent = isConcurrent
    self.timeout = timeout
  }

  /// The default phase: order 0, not concurrent.
  public static let standard = LifecyclePhase(order: 0)

  /// Whether two phases are the same; their timeouts may differ.
  func isSame(as other: Self) -> Bool {
    (order, isConcurrent) == (other.order, other.isConcurrent)
  }

  /// Whether a member is notified together with the one before it, whose phase this is.
  func isTogether(with last: LifecyclePhase?) -> Bool {
    isConcurrent && last.map { $0.isSame(as: self) } ?? false
  }

  static func < (a: LifecyclePhase, b: LifecyclePhase) -> Bool {
    (a.order, a.isConcurrent ? 1 : 0) < (b.order, b.isConcurrent ? 1 : 0)
  }
}
