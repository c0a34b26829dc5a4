// SPDX-License-Identifier: Apache-2.0
/// How many descriptors the process may have, and which of them are for clients.
///
/// Another client is worth less than a save, a reload, or a message to systemd, each of which needs a descriptor: the
/// last ones are never given to clients. Since the kernel always hands out the lowest free number, a number shows how
/// many are in use.
struct DescriptorLimit: Equatable {
  /// Clients have the numbers below this one.
  let end: Int32

  /// How many are reserved for the daemon itself, but no more than a quarter of all.
  static let reserve: UInt64 = 64

  init(allowed: UInt64) {
    end = Int32(clamping: allowed - min(Self.reserve, allowed / 4))
  }

  /// `LimitNOFILE=`, as it is now: prlimit(1) can change it for a running process.
  static var current: DescriptorLimit {
    var limit = rlimit()
    #if canImport(Musl)
      let resource = RLIMIT_NOFILE
    #else
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #endif
    guard getrlimit(resource, &limit) == 0 else { return DescriptorLimit(allowed: 1024) }
    return DescriptorLimit(allowed: UInt64(limit.rlim_cur))
  }

  func isForClients(_ descriptor: Int32) -> Bool { descriptor < end }

  /// Whether the next descriptor would be one for a client.
  func hasRoom(besides socket: Int32) -> Bool {
    Sockets.nextNumber(besides: socket).map(isForClients) ?? false
  }
}
