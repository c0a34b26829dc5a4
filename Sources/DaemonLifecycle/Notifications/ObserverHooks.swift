// SPDX-License-Identifier: Apache-2.0
/// The hooks of one observer, each with its index.
struct ObserverHooks: Sendable {
  /// The hooks that are known from the beginning; not empty.
  private let known: [Hook]
  /// The other hooks, whose indices follow; `nil` when there are none.
  let late: LateHooks?

  /// The hooks of closures, which have no observer's type.
  init(closures: [Hook]) {
    known = closures
    late = nil
  }

  init(of type: any LifecycleObserver.Type) {
    let declared = Hook.declared(by: type)
    if declared.isEmpty {
      // It has adopted all of them late, or none, which is an error. Either way this search settles it.
      let kinds: [NotificationKind?] = NotificationKind.allCases + [nil]
      let found = kinds.compactMap { Hook.search(type, for: $0) }
      known = found.isEmpty ? [.missing(type)] : found
      late = nil
    } else {
      known = declared
      late = LateHooks(type, after: declared.count)
    }
  }

  subscript(place: Int) -> Hook { place < known.count ? known[place] : late![place] }

  /// The notifications that the known hooks are for; `nil` for all notifications.
  var knownNotifications: [ObjectIdentifier?] { known.map { $0.notification } }
}
