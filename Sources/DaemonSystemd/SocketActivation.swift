// SPDX-License-Identifier: Apache-2.0
import CLinux

extension ServiceEnvironment {
  /// The names of the descriptors passed to this process, from descriptor 3 on (`LISTEN_FDS`, `LISTEN_FDNAMES`,
  /// `LISTEN_PID`, `LISTEN_PIDFDID` of systemd 259); empty when there are none, or they are for another process.
  ///
  /// Without names each is "unknown", as in sd_listen_fds_with_names(3). Sockets come first, in the order of the socket
  /// units, then stored descriptors. ``Preservation`` takes them over.
  ///
  /// - Throws: `malformedVariable`.
  package var passedDescriptorNames: [String] {
    get throws(SystemdError) {
      guard try processID(in: "LISTEN_PID") == processID else { return [] }
      // Another process may have had the same pid, or has it in another namespace, and its environment may be inherited.
      if let number: UInt64 = try number(in: "LISTEN_PIDFDID") {
        let own = clinux_process_number(processID)
        guard own == 0 || own == number else { return [] }
      }
      guard let count: Int32 = try number(in: "LISTEN_FDS"), count > 0 else { return [] }
      // The hard limit, since a process may lower the soft one while it has more open. If it is unlimited, as in many
      // containers, the kernel's default (fs.nr_open) counts: names for more would exhaust memory.
      let most = Int32(clamping: min(clinux_descriptor_limit(), 1 << 20))
      guard count <= most else {
        throw malformed(
          "LISTEN_FDS", "is more than the \(most) descriptors this process may have (RLIMIT_NOFILE)"
        )
      }
      guard let list = self["LISTEN_FDNAMES"] else {
        return Array(repeating: "unknown", count: Int(count))
      }
      let parts = list.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard parts.count == Int(count) else {
        throw malformed(
          "LISTEN_FDNAMES", "has \(parts.count) names for the \(count) descriptors of LISTEN_FDS")
      }
      guard parts.allSatisfy({ DescriptorName.isValid($0) }) else {
        throw malformed(
          "LISTEN_FDNAMES", "has a name of more than 255 bytes or with other than printable ASCII")
      }
      return parts.map { String(decoding: $0, as: UTF8.self) }
    }
  }
}
