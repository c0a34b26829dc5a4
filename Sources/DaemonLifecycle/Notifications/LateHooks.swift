// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The hooks that a type has and does not declare: adopted in a subclass, in another module, or for some type arguments
/// only (`DeclaredHooks.swift` says why these are not known).
///
/// Each is searched for when its notification is there to be delivered for the first time, so that a daemon that is never
/// suspended, say, does not pay for that. Whether there is one is a property of the type, and never changes.
final class LateHooks: Sendable {
  private let type: any LifecycleObserver.Type
  /// The place of the first: how many are declared.
  private let start: Int
  /// A bit for each kind without such a hook, once it was searched for; the last bit is that of the hook for all.
  /// Relaxed: whoever misses a bit looks again under the lock.
  private let absent = Atomic<UInt32>(0)
  private let found = Mutex<[Hook]>([])

  init(_ type: any LifecycleObserver.Type, after count: Int) {
    self.type = type
    start = count
  }

  subscript(place: Int) -> Hook { found.withLock { $0[place - start] } }

  /// The place of the hook for a kind that is not declared or, for `nil`, for all; `nil`: there is none.
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
