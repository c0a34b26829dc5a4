// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The opening of a file, FIFO or socket to watch.
struct PressureOpening {
  let watch: PressureWatch

  /// Opens and arms it. The caller closes the descriptor.
  func open() throws(SystemdError) -> (form: PressureMonitor.Form, number: Int32) {
    var status = stat()
    guard stat(watch.path, &status) == 0 else { throw failure("find", clinux_errno()) }
    let form = try form(of: status)
    let opened = OwnedDescriptor(owning: form == .socket ? try connected() : try openedFile())
    if form != .socket {
      // Checks the file that was opened, not the one whose form was checked before.
      guard fstat(opened.rawValue, &status) == 0 else { throw failure("find", clinux_errno()) }
      guard try self.form(of: status) == form else {
        throw .malformedInput(
          "\(watch.path) has changed while it was opened to watch for pressure.")
      }
    }
    if form == .file { try checkFile(opened.rawValue) }
    try arm(opened.rawValue, form)
    return (form, opened.release())
  }

  private func form(of status: stat) throws(SystemdError) -> PressureMonitor.Form {
    switch status.st_mode & mode_t(S_IFMT) {
    case mode_t(S_IFREG): return .file
    case mode_t(S_IFIFO): return .fifo
    case mode_t(S_IFSOCK): return .socket
    default:
      throw .invalidArgument(
        "\(watch.path) is neither a file, a FIFO nor a socket: it can't be watched for pressure.")
    }
  }

  /// Opens a file or a FIFO for reading and writing, so that a FIFO does not hang up when its writers close it.
  private func openedFile() throws(SystemdError) -> Int32 {
    let number = clinux_open(watch.path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard number >= 0 else { throw failure("open", clinux_errno()) }
    return number
  }

  private func connected() throws(SystemdError) -> Int32 {
    let number = socket(
      AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
    guard number >= 0 else { throw failure("open a socket for", clinux_errno()) }
    guard clinux_connect_unix(number, watch.path, watch.path.utf8.count, false) == 0 else {
      let error = clinux_errno()
      close(number)
      throw failure("connect to", error)
    }
    return number
  }

  /// Checks that the file is a pressure file: bytes must not be written into any other file, least of all into another
  /// one of the kernel's.
  private func checkFile(_ number: Int32) throws(SystemdError) {
    guard !watch.write.isEmpty else {
      throw .invalidArgument(
        "There is nothing to write into \(watch.path): without a trigger it never says that there is pressure."
      )
    }
    let answer = clinux_is_pressure_file(number)
    guard answer >= 0 else { throw failure("read", clinux_errno()) }
    guard answer == 1 else {
      throw .invalidArgument(
        "\(watch.path) is an ordinary file or another of the kernel's, not one of its pressure files:"
          + " nothing was written into it.")
    }
  }

  private func arm(_ number: Int32, _ form: PressureMonitor.Form) throws(SystemdError) {
    guard !watch.write.isEmpty else { return }
    // A socket whose peer has closed it must not end this process (SIGPIPE).
    let flags = Int32(bitPattern: UInt32(truncatingIfNeeded: MSG_NOSIGNAL))
    var written: Int
    repeat {
      written =
        form == .socket
        ? send(number, watch.write, watch.write.count, flags)
        : clinux_write(number, watch.write, watch.write.count)
    } while written < 0 && clinux_errno() == EINTR
    guard written >= 0 else { throw failure("arm", clinux_errno()) }
    guard written == watch.write.count else {
      throw .malformedInput(
        "\(watch.path) took only \(written) of the \(watch.write.count) bytes that arm it.")
    }
  }

  /// Makes an error, with a remedy where one is known.
  private func failure(_ verb: String, _ error: Int32) -> SystemdError {
    let hint: String? =
      switch error {
      case EOPNOTSUPP:
        "this kernel has pressure accounting switched off; boot it with psi=1"
      case EROFS:
        "a sandbox has made it read-only; bind it writable with BindPaths="
      case EACCES, EPERM:
        "this process may not write to it; MemoryPressureWatch=, CPUPressureWatch= or IOPressureWatch= "
          + "in the unit delegates it"
      case ENOENT:
        "this kernel does not account for pressure, or the control group is gone"
      case EINVAL where verb == "arm":
        "the kernel refuses the trigger: its window must be 0.5 s to 10 s and, without CAP_SYS_RESOURCE, a "
          + "multiple of 2 s"
      case EAGAIN: "nobody accepts its connections"
      case ECONNREFUSED: "nobody listens on it"
      case E2BIG: "a socket's path has room for 107 bytes"
      default: nil
      }
    let purpose = "\(verb) \(watch.path) to watch for pressure"
    return .system(hint.map { "\(purpose) (\($0))" } ?? purpose, errno: error)
  }
}
