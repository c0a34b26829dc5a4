// SPDX-License-Identifier: Apache-2.0
/// A step in the delivery order: lower phases hear first on the way up and last on the way down.
///
/// ```swift
/// extension LifecyclePhase {
///   static let database = LifecyclePhase(order: -10)
///   static let workers = LifecyclePhase(order: 10, concurrent: true)
/// }
/// ```
///
/// Within a phase, observers hear in the order in which they were added (in reverse on the way down). The
/// members of a concurrent phase hear together, so that stopping them takes as long as the slowest, not
/// as long as all. Of two phases with the same order the concurrent one is the higher.
///
/// Phases are the same when order and concurrency are; a deadline makes no other phase.
public struct LifecyclePhase: Sendable, Hashable {
  /// Lower phases hear first on the way up.
  public let order: Int
  /// Whether its members hear together.
  public let isConcurrent: Bool
  /// How long each hook of its members may take; `nil`: ``LifecycleConfiguration/hookDeadline``. A member's own comes
  /// first.
  public let deadline: Duration?

  /// A phase by its order; those with the same order and concurrency are one.
  ///
  /// - Parameters:
  ///   - order: Its place among the phases.
  ///   - concurrent: Whether its members are called together. Default false.
  ///   - deadline: How long each hook of its members may take. Default `nil`: as the configuration says.
  public init(order: Int, concurrent: Bool = false, deadline: Duration? = nil) {
    self.order = order
    isConcurrent = concurrent
    self.deadline = deadline
  }

  public static func == (a: Self, b: Self) -> Bool {
    (a.order, a.isConcurrent) == (b.order, b.isConcurrent)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(order)
    hasher.combine(isConcurrent)
  }

  /// Order 0, one after another: where observers are unless said otherwise.
  public static let standard = LifecyclePhase(order: 0)

  static func < (a: LifecyclePhase, b: LifecyclePhase) -> Bool {
    (a.order, a.isConcurrent ? 1 : 0) < (b.order, b.isConcurrent ? 1 : 0)
  }
}
