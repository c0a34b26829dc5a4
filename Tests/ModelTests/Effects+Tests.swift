// SPDX-License-Identifier: Apache-2.0
@testable import DaemonLifecycle

extension Effects {
  /// Takes all calls, as drivers would.
  mutating func takeStarts() -> [CallID] {
    var ids: [CallID] = []
    while let id = starts.popFirst() { ids.append(id) }
    return ids
  }
}
