// SPDX-License-Identifier: Apache-2.0
import CLinux

// Bytes that travel as a descriptor: a file of memory without a name, which nobody can change any more
// (memfd_create(2), F_ADD_SEALS of fcntl(2)).
extension OwnedDescriptor {
  /// The most that ``memoryBytes(limit:)`` reads unless told otherwise: 64 MiB.
  public static var memoryLimit: Int { 64 << 20 }

  /// Makes a sealed file of memory with exactly these bytes.
  ///
  /// ```swift
  /// let state = try OwnedDescriptor.memory(named: "state", bytes)
  /// try DescriptorStore(.current).store(state.rawValue, named: "state", polled: false)
  /// ```
  ///
  /// It is memory, not disk: it lives as long as somebody has it open, the service manager for instance, and is gone
  /// with the machine. Whoever gets it may rely on it staying as it is. Close-on-exec.
  ///
  /// - Parameters:
  ///   - name: What `/proc/PID/fd` shows: at most 249 bytes without NUL. No two need differ.
  ///   - bytes: All of it; may be empty.
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

  /// An empty file of memory, to be filled and sealed later.
  static func emptyMemory(named name: String) throws(SystemdError) -> OwnedDescriptor {
    let number = clinux_memfd(name)
    guard number >= 0 else {
      throw .system("make a memory file \"\(name)\"", errno: clinux_errno())
    }
    return OwnedDescriptor(owning: number)
  }

  /// Puts bytes into a file of `emptyMemory(named:)` and seals it.
  func fillAndSeal(_ bytes: [UInt8]) throws(SystemdError) {
    guard clinux_fill_and_seal(rawValue, bytes, bytes.count) == 0 else {
      throw .system("make a memory file of \(bytes.count) bytes", errno: clinux_errno())
    }
  }

  /// Everything in a sealed file of memory.
  ///
  /// One that is not sealed is refused, since its maker could change it while, and after, it is read. The descriptor's
  /// position is neither used nor moved.
  ///
  /// - Parameter limit: How many bytes there may be at most, so that a peer can't fill our memory.
  /// - Throws: `malformedInput` when it is anything else than a sealed file of memory, or longer than the limit;
  ///   `system`.
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
    // Sealed, so it stays as long as it is.
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
