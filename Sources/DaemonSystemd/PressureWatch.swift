// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The way in which memory pressure is to be watched. systemd documents a FIFO and a socket besides the kernel's pressure
/// files, but names neither to any service: they are not supported.
///
/// Source: systemd's "Resource Pressure Handling", the kernel's "PSI".
package struct PressureWatch: Sendable, Hashable {
  /// The pressure file, absolute.
  package let path: String
  /// The trigger to write into it first; may contain NUL.
  package let write: [UInt8]

  /// Makes a watch, for tests too.
  package init(path: String, write: [UInt8] = []) {
    self.path = path
    self.write = write
  }

  package var isOff: Bool { path == "/dev/null" }

  /// The trigger: some task waits for 200 ms within 2 s. systemd gives the same to services
  /// (systemd.resource-control(5)), and the kernel allows the window to any user. It ends with NUL, since the kernel
  /// overwrites the last byte.
  static let trigger = Array("some 200000 2000000\0".utf8)

  /// Returns the pressure file of this process's control group; `nil` when there is none that this process may write
  /// to: without a unified hierarchy, without pressure accounting, or when the group is not delegated to the service.
  package static func ownCgroup() throws(SystemdError) -> PressureWatch? {
    let paths = folders(try path(inCgroupFile: readProcFile("/proc/self/cgroup")))
      .map { "\($0)/memory.pressure" }
    return paths.first { access($0, W_OK) == 0 }.map { PressureWatch(path: $0, write: trigger) }
  }

  /// Returns the folders that may be the control group's, the likeliest first; none without a unified hierarchy. A
  /// container may see its own group as the root.
  static func folders(_ path: String?) -> [String] {
    let root = "/sys/fs/cgroup"
    // "/.." is where a control group outside of this process's namespace begins.
    guard let path, !path.hasPrefix("/..") else { return [] }
    return path == "/" ? [root] : [root + path, root]
  }

  /// Returns the path in the unified hierarchy, which follows `0::`. Source: cgroups(7).
  static func path(inCgroupFile bytes: [UInt8]) throws(SystemdError) -> String? {
    var rest = bytes[...]
    while !rest.isEmpty {
      let line = rest.prefix { $0 != UInt8(ascii: "\n") }
      rest = rest[line.endIndex...].dropFirst()
      if line.isEmpty { continue }
      let id = line.prefix { $0 != UInt8(ascii: ":") }
      let controllers = line[id.endIndex...].dropFirst().prefix { $0 != UInt8(ascii: ":") }
      guard controllers.endIndex < line.endIndex, let hierarchy: UInt32 = decimal(id)
      else {
        throw malformed("is not id:controllers:path", line)
      }
      guard hierarchy == 0, controllers.isEmpty else { continue }
      let path = line[controllers.endIndex...].dropFirst()
      guard path.first == UInt8(ascii: "/"), let text = String(validating: path, as: UTF8.self)
      else { throw malformed("has no absolute path in UTF-8", line) }
      return text
    }
    return nil
  }

  private static func malformed(_ reason: String, _ line: ArraySlice<UInt8>) -> SystemdError {
    let text = VisibleText.line(String(decoding: line.prefix(200), as: UTF8.self))
    return .malformedInput("/proc/self/cgroup has the line \"\(text)\", which \(reason).")
  }

  /// Opens the file, and writes the trigger: the descriptor is ready with POLLPRI when memory is short, and with POLLERR
  /// for ever when its control group is gone.
  ///
  /// Polling consumes the event: in an epoll set that is polled itself, the outer poll would consume it.
  package func open() throws(SystemdError) -> OwnedDescriptor {
    let number = clinux_open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard number >= 0 else { throw failure("open") }
    let file = OwnedDescriptor(owning: number)
    // No other file is written to, least of all another file of the kernel's.
    let answer = clinux_is_pressure_file(number)
    guard answer >= 0 else { throw failure("read") }
    guard answer == 1 else {
      throw .invalidArgument(
        "\(path) is not one of the kernel's pressure files: nothing was written into it, and it is not watched."
      )
    }
    guard !write.isEmpty else {
      throw .invalidArgument(
        "There is nothing to write into \(path): without a trigger it never reports pressure.")
    }
    guard clinux_write(number, write, write.count) == write.count else { throw failure("arm") }
    return file
  }

  /// The error of the last system call.
  private func failure(_ verb: String) -> SystemdError {
    .system(purpose: "\(verb) \(path) to watch for pressure", errno: clinux_errno())
  }
}

extension ServiceEnvironment {
  /// The watch in `MEMORY_PRESSURE_WATCH` and `MEMORY_PRESSURE_WRITE` (systemd 254); `nil` when they are unset, which
  /// leaves the choice to the service.
  package var pressureWatch: PressureWatch? {
    get throws(SystemdError) {
      guard let path = try absolutePath(in: "MEMORY_PRESSURE_WATCH") else { return nil }
      let watch = PressureWatch(path: path)
      guard !watch.isOff, let text = self["MEMORY_PRESSURE_WRITE"] else { return watch }
      guard let bytes = decodeBase64(text.utf8) else {
        throw malformed("MEMORY_PRESSURE_WRITE", "is not Base64")
      }
      return PressureWatch(path: path, write: bytes)
    }
  }
}

package func readProcFile(_ path: String) throws(SystemdError) -> [UInt8] {
  let number = clinux_open(path, O_RDONLY | O_CLOEXEC)
  guard number >= 0 else { throw .system(purpose: "open \(path)", errno: clinux_errno()) }
  let file = OwnedDescriptor(owning: number)
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 16 * 1024)
  while bytes.count <= 64 << 20 {
    let count = read(file.rawValue, &chunk, chunk.count)
    if count == 0 { return bytes }
    if count < 0, clinux_errno() == EINTR { continue }
    guard count > 0 else { throw .system(purpose: "read \(path)", errno: clinux_errno()) }
    bytes.append(contentsOf: chunk[..<count])
  }
  throw .malformedInput("\(path) is larger than 64 MiB.")
}
