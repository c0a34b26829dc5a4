// SPDX-License-Identifier: Apache-2.0
/// A file descriptor that was received over the bus; closed with the last reference.
package final class BusDescriptor: Sendable {
  package let descriptor: OwnedDescriptor

  package init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
}
