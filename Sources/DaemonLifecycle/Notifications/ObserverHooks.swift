// SPDX-License-Identifier: Apache-2.0
/// The hooks of one observer, each with its place.
struct ObserverHooks: Sendable {
  /// Known from the beginning; not empty.
  private let known: [Hook]
  /// The others, which come after them; `nil`: there are none.
  let late: LateHooks?

  /// Closures, which are no observer's.
  init(closures: [Hook]) {
    known = closures
    late = nil
  }

  init(of type: any LifecycleObserver.Type) {
    let declared = Hook.declared(by: type)
    if declared.isEmpty {
      // It has adopted them all late, or none, which is an error: either way it is known now.
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

  /// What those that are known are for; `nil`: all notifications.
  var knownNotifications: [ObjectIdentifier?] { known.map { $0.notification } }
}
