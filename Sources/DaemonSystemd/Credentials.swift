// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The secrets that the service manager has laid out for this service (`LoadCredential=`, `SetCredential=` and the
/// like; systemd 247).
///
/// ```swift
/// let credentials = try Credentials(ServiceEnvironment.current)
/// guard let token = try credentials.string(named: "api-token") else { throw Missing() }
/// ```
///
/// They lie in a read-only directory of the service's own, in memory that is not swapped. They are read afresh each
/// time, since systemd 260 can renew them on reload. Source: systemd.exec(5). Safe to use from any thread.
public struct Credentials: Sendable {
  /// What one credential may have at most, in bytes: systemd's limit for all of a service together.
  package static let maximumSize = 1024 * 1024

  /// The directory of the credentials, absolute; `nil` without any.
  public let directory: String?

  /// The credentials of this environment; none if it names no directory.
  ///
  /// - Throws: `malformedVariable` when `CREDENTIALS_DIRECTORY` is no absolute path.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    directory = try environment.credentialsDirectory
  }

  /// The credentials in a directory, for tests.
  public init(directory: String?) { self.directory = directory }

  /// The names of all credentials, sorted.
  ///
  /// - Throws: `system` when the directory can't be read.
  public var names: [String] {
    get throws(SystemdError) {
      guard let directory else { return [] }
      let purpose = "list the credentials in \(directory)"
      guard let stream = opendir(directory) else { throw .system(purpose, errno: clinux_errno()) }
      defer { closedir(stream) }
      var names: [String] = []
      while let entry = readdir(stream) {
        // The name is an array in C, which ends with a NUL.
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if Credentials.isValid(name) { names.append(name) }
      }
      return names.sorted()
    }
  }

  /// The bytes of a credential; `nil` when there is none of this name.
  ///
  /// - Throws: `invalidArgument` for what can't be a name, `system` if it can't be read, `malformedInput` if it is
  ///   larger than 1 MiB, systemd's limit, or no file.
  public func data(named name: String) throws(SystemdError) -> [UInt8]? {
    guard Credentials.isValid(name) else {
      throw .invalidArgument(
        "\"\(name)\" can't name a credential: 1 to 255 ASCII characters without '/', ':' and control characters."
      )
    }
    guard let directory else { return nil }
    let purpose = "read the credential \(name)"
    // Not blocking: it is to be a file, and opening a FIFO would wait.
    let number = clinux_open("\(directory)/\(name)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard number >= 0 else {
      if clinux_errno() == ENOENT { return nil }
      throw .system(purpose, errno: clinux_errno())
    }
    let file = OwnedDescriptor(owning: number)
    guard try DescriptorKind(of: file.rawValue).use == .file else {
      throw .malformedInput("The credential \(name) is not a regular file.")
    }
    guard let bytes = try file.bytesToEnd(limit: Self.maximumSize, purpose: purpose) else {
      throw .malformedInput("The credential \(name) is larger than \(Self.maximumSize) bytes.")
    }
    return bytes
  }

  /// The text of a credential; `nil` when there is none of this name. A line break at its end stays.
  ///
  /// - Throws: As ``data(named:)``; also `malformedInput` when it is not UTF-8.
  public func string(named name: String) throws(SystemdError) -> String? {
    guard let bytes = try data(named: name) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .malformedInput(
        "The credential \(name) is not UTF-8. Read its bytes with data(named:).")
    }
    return text
  }

  private static func isValid(_ name: String) -> Bool {
    !name.isEmpty && name != "." && name != ".." && !name.utf8.contains(UInt8(ascii: "/"))
      && DescriptorName.isValid(name.utf8)
  }
}
