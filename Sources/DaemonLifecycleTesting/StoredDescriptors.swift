// SPDX-License-Identifier: Apache-2.0
internal import CLinux
import DaemonSystemd

/// A descriptor in the store.
package struct StoredDescriptor: Sendable {
  /// The name in `FDNAME=`, or "stored".
  package let name: String
  /// Whether the descriptor is removed when its peer hangs up.
  package let polled: Bool
  /// The descriptor's number in this process; the next message may invalidate it.
  package let number: Int32
}

/// The descriptor store of a unit, as systemd keeps it. It owns its descriptors; access only while holding the owner's
/// lock.
struct StoredDescriptors: ~Copyable {
  /// At most `limit` entries, no two of them for the same socket or file of memory.
  private var entries: [StoredDescriptor] = []
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  deinit {
    for entry in entries { close(entry.number) }
  }

  /// The stored descriptors, without polled ones whose peer has hung up.
  var descriptors: [StoredDescriptor] {
    mutating get {
      dropHungUp()
      return entries
    }
  }

  /// Takes over the descriptors. Returns a sentence when there was no room for some.
  mutating func store(_ descriptors: [Int32], name: String, polled: Bool) -> String? {
    dropHungUp()
    var refused = 0
    for number in descriptors {
      // Descriptors of other kinds may share one inode, as all eventfds do.
      let file = (try? DescriptorUse(of: number)) == nil ? nil : FileIdentity(of: number)
      if file != nil, entries.contains(where: { FileIdentity(of: $0.number) == file }) {
        close(number)  // stored already: systemd keeps the first, with its first name
      } else if entries.count >= limit {
        close(number)
        refused += 1
      } else {
        entries.append(.init(name: name, polled: polled, number: number))
      }
    }
    guard refused > 0 else { return nil }
    return limit == 0
      ? "FDSTORE=1 came although FDSTORE is not set: \(refused) closed."
      : "The store of \(limit) descriptors is full: \(refused) closed, of the name \"\(name)\"."
  }

  mutating func remove(name: String) {
    for entry in entries where entry.name == name { close(entry.number) }
    entries.removeAll { $0.name == name }
  }

  private mutating func dropHungUp() {
    entries.removeAll { entry in
      guard entry.polled else { return false }
      var poll = pollfd(fd: entry.number, events: 0, revents: 0)
      guard CLinux.poll(&poll, 1, 0) > 0, Int32(poll.revents) & (POLLHUP | POLLERR) != 0 else {
        return false
      }
      close(entry.number)
      return true
    }
  }
}
