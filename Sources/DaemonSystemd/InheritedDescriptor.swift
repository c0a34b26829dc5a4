// SPDX-License-Identifier: Apache-2.0
import CLinux

extension ServiceEnvironment {
  /// The number of the descriptor to write a newline to when the daemon is ready (`NOTIFY_FD`); `nil` without one.
  ///
  /// This package defines the name. Inits that pass such a descriptor have no variable for it, or let the service's
  /// definition choose the name: dinit's `ready-notification = pipevar:NOTIFY_FD`.
  ///
  /// - Throws: `malformedVariable`.
  package var readinessDescriptor: Int32? {
    get throws(SystemdError) {
      guard let text = self["NOTIFY_FD"], !text.isEmpty else { return nil }
      guard let number: Int32 = decimal(text.utf8), number > 2 else {
        throw malformed("NOTIFY_FD", "is not the number of a descriptor above 2")
      }
      return number
    }
  }
}

extension OwnedDescriptor {
  /// Takes over an inherited descriptor to which readiness is written, and makes it close-on-exec.
  ///
  /// A descriptor that is close-on-exec already was not inherited: code of this process opened it, or it was taken over
  /// before. It is refused, and not changed.
  ///
  /// A descriptor of `LISTEN_FDS`, which ``PassedDescriptors`` owns, is refused, too.
  ///
  /// - Parameters:
  ///   - source: The source of the number, for the error.
  ///   - environment: The environment that this process was started with.
  /// - Throws: `invalidArgument` for a number that is not such a descriptor.
  package static func takeInherited(
    _ number: Int32, from source: String, in environment: ServiceEnvironment
  ) throws(SystemdError) -> OwnedDescriptor {
    func unusable(_ reason: String) -> SystemdError {
      .invalidArgument("Readiness is not reported to descriptor \(number) (\(source)): \(reason)")
    }
    guard number > 2 else {
      throw unusable("it is a standard stream. Have the init pass another.")
    }
    // A malformed list is reported with the other variables.
    let passed = (try? environment.passedDescriptorNames.count) ?? 0
    guard number >= 3 + passed else {
      throw unusable("it is one of the \(passed) of LISTEN_FDS. Have the init pass another.")
    }
    let flags = clinux_descriptor_flags(number)
    guard flags >= 0 else { throw unusable("it is not open. Have the init pass it.") }
    guard flags & FD_CLOEXEC == 0 else {
      throw unusable("it was not inherited, or is in use already. Have the init pass one.")
    }
    guard clinux_is_writable(number) else { throw unusable("it is not open for writing.") }
    // A newline would be written over the beginning of a file.
    var status = stat()
    guard fstat(number, &status) == 0,
      [S_IFIFO, S_IFSOCK].contains(Int32(truncatingIfNeeded: status.st_mode) & S_IFMT)
    else { throw unusable("it is neither a pipe nor a socket. Have the init pass one.") }
    _ = clinux_set_close_on_exec(number)
    return OwnedDescriptor(owning: number)
  }
}
