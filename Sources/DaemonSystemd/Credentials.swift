// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The credentials that the service manager provides for this service (`LoadCredential=`, `SetCredential=` and similar
/// settings; systemd 247).
///
/// ```swift
/// let credentials = try Credentials(ServiceEnvironment.current)
/// guard let token = try credentials.string(named: "api-token") else { throw Missing() }
/// ```
///
/// They are in a read-only directory of the service, in memory that is not swapped. They are read from there at each
/// call, since systemd 260 can renew them on reload. Source: systemd.exec(5). Safe to use from any thread.
public struct Credentials: Sendable {
  /// The largest size of a credential in bytes: systemd's limit for all credentials of a service together.
  package static let maximumSize = 1024 * 1024

  /// The absolute path of the directory with the credentials; `nil` when there is none.
  public let directory: String?

  /// Makes the credentials of an environment; there are none if it names no directory.
  ///
  /// - Throws: `malformedVariable` when `CREDENTIALS_DIRECTORY` is not an absolute path.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    directory = try environment.credentialsDirectory
  }

  /// Makes the credentials of a directory, for tests.
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

  /// Returns the bytes of a credential; `nil` when there is none of this name.
  ///
  /// - Throws: `invalidArgument` for an invalid name, `system` if it can't be read, `malformedInput` if it is larger
  ///   than 1 MiB, which is systemd's limit, or not a file.
  public func data(named name: String) throws(SystemdError) -> [UInt8]? {
    guard Credentials.isValid(name) else {
      throw .invalidArgument(
        "\"\(name)\" can't name a credential: 1 to 255 ASCII characters without '/', ':' and control characters."
      )
    }
    guard let directory else { return nil }
    let purpose = "read the credential \(name)"
    // Non-blocking: it should be a file, and opening a FIFO would block.
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

  /// Returns the text of a credential; `nil` when there is none of this name. A line break at its end is kept.
  ///
  /// - Throws: The errors of ``data(named:)``; also `malformedInput` when it is not UTF-8.
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
