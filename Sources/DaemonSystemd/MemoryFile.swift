// SPDX-License-Identifier: Apache-2.0
import CLinux

// Bytes that are passed as a descriptor: a sealed file of memory, which can't be changed any more (memfd_create(2),
// F_ADD_SEALS of fcntl(2)).
extension OwnedDescriptor {
  /// Makes a sealed file of memory with the given bytes. It exists as long as a process, such as the service manager,
  /// has it open.
  ///
  /// - Parameter name: The name that `/proc/PID/fd` shows. The kernel refuses more than 249 bytes; it need not be unique.
  package static func memory(
    named name: String, _ bytes: [UInt8]
  ) throws(SystemdError) -> OwnedDescriptor {
    let memory = try emptyMemory(named: name)
    try memory.fillAndSeal(bytes)
    return memory
  }

  /// Makes an empty file of memory, to be filled and sealed later.
  static func emptyMemory(named name: String) throws(SystemdError) -> OwnedDescriptor {
    let number = clinux_memfd(name)
    guard number >= 0 else {
      throw .system(purpose: "make a memory file \"\(name)\"", errno: clinux_errno())
    }
    return OwnedDescriptor(owning: number)
  }

  /// Writes bytes to a file of `emptyMemory(named:)` and seals it.
  func fillAndSeal(_ bytes: [UInt8]) throws(SystemdError) {
    guard clinux_fill_and_seal(rawValue, bytes, bytes.count) == 0 else {
      throw .system(purpose: "make a memory file of \(bytes.count) bytes", errno: clinux_errno())
    }
  }

  /// Reads the whole content of a sealed file of memory.
  ///
  /// A file that is not sealed is refused, since its creator could change it during and after the read. The
  /// descriptor's position is neither used nor changed.
  ///
  /// - Parameter limit: The largest size to read, so that a peer can't exhaust this process's memory.
  /// - Throws: `malformedInput` when it is not a sealed file of memory, or longer than the limit; `system`.
  package func memoryBytes(limit: Int = 64 << 20) throws(SystemdError) -> [UInt8] {
    guard try DescriptorUse(of: rawValue) == .memory else {
      throw .malformedInput(
        "File descriptor \(rawValue) is not a sealed memory file. It was not read.")
    }
    var status = stat()
    guard fstat(rawValue, &status) == 0 else {
      throw .system(purpose: "look at file descriptor \(rawValue)", errno: clinux_errno())
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
      throw .system(purpose: "read the memory file \(rawValue)", errno: failure)
    }
    return bytes
  }
}
