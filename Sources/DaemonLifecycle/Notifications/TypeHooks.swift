// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The hooks of the observers of one type: what a search finds never changes.
final class TypeHooks: Sendable {
  /// At least one: a type without any has an error as its hook.
  let hooks: [Hook]
  /// The notification of each.
  let receives: [ObjectIdentifier?]

  /// By type. Few: making a dictionary's type would take longer than searching them.
  private static let known = Mutex<[(type: ObjectIdentifier, hooks: TypeHooks)]>([])

  /// Returns the hooks of a type. Not under another lock: the first call for a type searches all conformances of the
  /// program once for each kind, in 0.2 ms.
  static func of(_ type: any LifecycleObserver.Type) -> TypeHooks {
    let id = ObjectIdentifier(type)
    if let known = known.withLock({ $0.last { $0.type == id } }) { return known.hooks }
    let found = NotificationKind.allCases.compactMap { Hook.search(type, for: $0) }
    let hooks = TypeHooks(found.isEmpty ? [.missing(type)] : found)
    // Another thread may have found the same meanwhile: either will do.
    known.withLock { $0.append((id, hooks)) }
    return hooks
  }

  init(_ hooks: [Hook]) {
    self.hooks = hooks
    receives = hooks.map(\.notification)
  }
}
