// SPDX-License-Identifier: Apache-2.0
import CLinux

// Bytes that are passed as a descriptor: a sealed file of memory, which can't be changed any more (memfd_create(2),
// F_ADD_SEALS of fcntl(2)).
extension OwnedDescriptor {
  /// The default limit of ``memoryBytes(limit:)``: 64 MiB.
  public static var memoryLimit: Int { 64 << 20 }

  /// Makes a sealed file of memory with the given bytes.
  ///
  /// ```swift
  /// let state = try OwnedDescriptor.memory(named: "state", bytes)
  /// try DescriptorStore(.current).store(state.rawValue, named: "state", polled: false)
  /// ```
  ///
  /// The file is in memory, not on disk: it exists as long as a process, such as the service manager, has it open. A
  /// receiver can rely on its not being changed. The descriptor is close-on-exec.
  ///
  /// - Parameters:
  ///   - name: The name that `/proc/PID/fd` shows: at most 249 bytes without NUL. It need not be unique.
  ///   - bytes: The whole content; may be empty.
  /// - Throws: `invalidArgument` for the name, `system` when the kernel has no memory or no descriptor left.
  public static func memory(
    named name: String, _ bytes: [UInt8]
  ) throws(SystemdError) -> OwnedDescriptor {
    guard name.utf8.count <= 249, !name.utf8.contains(0) else {
      throw .invalidArgument(
        "\"\(name)\" can't name a memory file: at most 249 bytes without NUL.")
    }
    let memory = try emptyMemory(named: name)
    try memory.fillAndSeal(bytes)
    return memory
  }

  /// Makes an empty file of memory, to be filled and sealed later.
  static func emptyMemory(named name: String) throws(SystemdError) -> OwnedDescriptor {
    let number = clinux_memfd(name)
    guard number >= 0 else {
      throw .system("make a memory file \"\(name)\"", errno: clinux_errno())
    }
    return OwnedDescriptor(owning: number)
  }

  /// Writes bytes to a file of `emptyMemory(named:)` and seals it.
  func fillAndSeal(_ bytes: [UInt8]) throws(SystemdError) {
    guard clinux_fill_and_seal(rawValue, bytes, bytes.count) == 0 else {
      throw .system("make a memory file of \(bytes.count) bytes", errno: clinux_errno())
    }
  }

  /// Reads the whole content of a sealed file of memory.
  ///
  /// A file that is not sealed is refused, since its creator could change it during and after the read. The
  /// descriptor's position is neither used nor changed.
  ///
  /// - Parameter limit: The largest size to read, so that a peer can't exhaust this process's memory. Default 64 MiB.
  /// - Throws: `malformedInput` when it is not a sealed file of memory, or longer than the limit; `system`.
  public func memoryBytes(limit: Int = memoryLimit) throws(SystemdError) -> [UInt8] {
    let kind = try DescriptorKind(of: rawValue)
    guard kind == .sealedMemory else {
      throw .malformedInput(
        "File descriptor \(rawValue) is not a sealed memory file but: \(kind). It was not read.")
    }
    var status = stat()
    guard fstat(rawValue, &status) == 0 else {
      throw .system("look at file descriptor \(rawValue)", errno: clinux_errno())
    }
    // It is sealed, so its size can't change.
    let size = Int(status.st_size)
    guard size <= limit else {
      throw .malformedInput(
        "The memory file \(rawValue) has \(size) bytes, more than the \(limit) allowed. It was not read."
      )
    }
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      while count < size {
        let read = pread(
          rawValue, buffer.baseAddress.map { $0 + count }, size - count, off_t(count))
        if read < 0, clinux_errno() == EINTR { continue }
        guard read > 0 else {
          failure = read < 0 ? clinux_errno() : EIO
          return
        }
        count += read
      }
    }
    guard failure == 0 else {
      throw .system("read the memory file \(rawValue)", errno: failure)
    }
    return bytes
  }
}
