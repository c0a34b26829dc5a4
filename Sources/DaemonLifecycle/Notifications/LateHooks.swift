// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The hooks that a type has but does not declare: adopted in a subclass, in another module, or for some type arguments
/// only (`DeclaredHooks.swift` explains why the compiler does not know them).
///
/// Each is searched for when its notification is first delivered, so that a daemon that is never suspended, for
/// example, does not pay for that. Whether there is one depends on the type, and never changes.
final class LateHooks: Sendable {
  private let type: any LifecycleObserver.Type
  /// The index of the first, which is the number of declared hooks.
  private let start: Int
  /// One bit for each kind that was searched for without success; the last bit is for the hook for all. Relaxed, since
  /// a thread that misses a bit checks again under the lock.
  private let absent = Atomic<UInt32>(0)
  private let found = Mutex<[Hook]>([])

  init(_ type: any LifecycleObserver.Type, after count: Int) {
    self.type = type
    start = count
  }

  subscript(place: Int) -> Hook { found.withLock { $0[place - start] } }

  /// The index of the hook for a kind that is not declared or, for `nil`, for all; `nil` when there is none.
  func place(of kind: NotificationKind?) -> Int? {
    let bit = UInt32(1) << UInt32(kind?.rawValue ?? 31)
    if absent.load(ordering: .relaxed) & bit != 0 { return nil }
    return found.withLock { found in
      let notification = kind.map { ObjectIdentifier($0.row.type) }
      if let index = found.firstIndex(where: { $0.notification == notification }) {
        return start + index
      }
      guard let hook = Hook.search(type, for: kind) else {
        absent.bitwiseOr(bit, ordering: .relaxed)
        return nil
      }
      found.append(hook)
      return start + found.count - 1
    }
  }
}
