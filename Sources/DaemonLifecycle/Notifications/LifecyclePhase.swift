// SPDX-License-Identifier: Apache-2.0
/// A step in the delivery order: lower phases are notified first on the way up and last on the way down.
///
/// ```swift
/// extension LifecyclePhase {
///   static let database = LifecyclePhase(order: -10)
///   static let workers = LifecyclePhase(order: 10, concurrent: true)
/// }
/// ```
///
/// Within a phase, observers are notified in the order in which they were added, and in reverse on the way down. The
/// members of a concurrent phase are notified at the same time, so that stopping them takes as long as the slowest, not
/// as long as all together. Of two phases with the same order the concurrent one is the higher.
///
/// Two phases are equal when their order and concurrency are; the deadline is not compared.
public struct LifecyclePhase: Sendable, Hashable {
  /// The position among the phases. Lower phases are notified first on the way up.
  public let order: Int
  /// Whether its members are notified at the same time.
  public let isConcurrent: Bool
  /// How long each hook of its members may take; `nil` for ``LifecycleConfiguration/hookDeadline``. A deadline that was
  /// given for an observer takes precedence.
  public let deadline: Duration?

  /// Makes a phase. Those with the same order and concurrency are the same phase.
  ///
  /// - Parameters:
  ///   - order: The position among the phases. Lower phases are notified first on the way up.
  ///   - concurrent: Whether its members are notified at the same time. Default false.
  ///   - deadline: How long each hook of its members may take. Default `nil`: ``LifecycleConfiguration/hookDeadline``.
  public init(order: Int, concurrent: Bool = false, deadline: Duration? = nil) {
    self.order = order
    isConcurrent = concurrent
    self.deadline = deadline
  }

  /// Whether two phases have the same order and concurrency.
  public static func == (a: Self, b: Self) -> Bool {
    (a.order, a.isConcurrent) == (b.order, b.isConcurrent)
  }

  /// Hashes the order and the concurrency.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(order)
    hasher.combine(isConcurrent)
  }

  /// The default phase: order 0, not concurrent.
  public static let standard = LifecyclePhase(order: 0)

  static func < (a: LifecyclePhase, b: LifecyclePhase) -> Bool {
    (a.order, a.isConcurrent ? 1 : 0) < (b.order, b.isConcurrent ? 1 : 0)
  }
}
