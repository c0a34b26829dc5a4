// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The place of this process's control group in the file system.
enum PressureCgroup {
  /// Returns the folders that may be the control group's, the likeliest first; none without a unified hierarchy. A
  /// container may see its own group as the root. Elsewhere the root is the whole machine, which is watched when the
  /// group can't be.
  static func folders() throws(SystemdError) -> [String] {
    try folders(inCgroupFile: readProcFile("/proc/self/cgroup"))
  }

  static func folders(inCgroupFile bytes: [UInt8]) throws(SystemdError) -> [String] {
    let root = "/sys/fs/cgroup"
    // "/.." is where a control group outside of this process's namespace begins.
    guard let path = try path(inCgroupFile: bytes), !path.hasPrefix("/..") else { return [] }
    return path == "/" ? [root] : [root + path, root]
  }

  /// Returns the path in the unified hierarchy, which follows `0::`. Source: cgroups(7).
  static func path(inCgroupFile bytes: [UInt8]) throws(SystemdError) -> String? {
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let parts = line.split(
        separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, let hierarchy = decimal(parts[0], as: UInt32.self) else {
        throw malformed("is not id:controllers:path", line)
      }
      guard hierarchy == 0, parts[1].isEmpty else { continue }
      guard parts[2].first == UInt8(ascii: "/"),
        let path = String(validating: parts[2], as: UTF8.self)
      else { throw malformed("has no absolute path in UTF-8", line) }
      return path
    }
    return nil
  }

  private static func malformed(_ reason: String, _ line: ArraySlice<UInt8>) -> SystemdError {
    let text = VisibleText.line(String(decoding: line.prefix(200), as: UTF8.self))
    return .malformedInput("/proc/self/cgroup has the line \"\(text)\", which \(reason).")
  }
}

func readProcFile(_ path: String) throws(SystemdError) -> [UInt8] {
  let number = clinux_open(path, O_RDONLY | O_CLOEXEC)
  guard number >= 0 else { throw .system("open \(path)", errno: clinux_errno()) }
  let file = OwnedDescriptor(owning: number)
  guard let bytes = try file.bytesToEnd(limit: 64 << 20, purpose: "read \(path)") else {
    throw .malformedInput("\(path) is larger than 64 MiB.")
  }
  return bytes
}
