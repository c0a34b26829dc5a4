// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// The directories for what must survive: `StateDirectory=` (`STATE_DIRECTORY`, 244), absolute, in the unit's order;
  /// empty when unset.
  ///
  /// - Throws: `malformedVariable` for anything but absolute paths.
  public var stateDirectories: [String] {
    get throws(SystemdError) { try directories(in: "STATE_DIRECTORY") }
  }

  /// The directories for what may go when the service stops: `RuntimeDirectory=` (`RUNTIME_DIRECTORY`, 244), otherwise
  /// as ``stateDirectories``.
  public var runtimeDirectories: [String] {
    get throws(SystemdError) { try directories(in: "RUNTIME_DIRECTORY") }
  }

  /// The directories for what can be made again: `CacheDirectory=` (`CACHE_DIRECTORY`, 244), otherwise as
  /// ``stateDirectories``.
  public var cacheDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CACHE_DIRECTORY") }
  }

  /// The directories for logs: `LogsDirectory=` (`LOGS_DIRECTORY`, 244), otherwise as ``stateDirectories``.
  public var logsDirectories: [String] {
    get throws(SystemdError) { try directories(in: "LOGS_DIRECTORY") }
  }

  /// The directories of the configuration: `ConfigurationDirectory=` (`CONFIGURATION_DIRECTORY`, 244), otherwise as
  /// ``stateDirectories``.
  public var configurationDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CONFIGURATION_DIRECTORY") }
  }

  /// The directory of what `LoadCredential=` and the like give (`CREDENTIALS_DIRECTORY`, 247), for ``Credentials``.
  ///
  /// - Throws: `malformedVariable` for no absolute path.
  public var credentialsDirectory: String? {
    get throws(SystemdError) { try absolutePath(in: "CREDENTIALS_DIRECTORY") }
  }

  static let directoryVariables = [
    "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY",
    "CONFIGURATION_DIRECTORY",
  ]

  /// A list separated by ':', which a path of these can't have in it.
  func directories(in name: String) throws(SystemdError) -> [String] {
    guard let list = self[name] else { return [] }
    guard !list.utf8.contains(0) else { throw malformed(name, "has a NUL byte in it") }
    let parts = list.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    for part in parts where part.first != UInt8(ascii: "/") {
      throw malformed(name, "is not a list of absolute paths separated by ':'")
    }
    return parts.map { String(decoding: $0, as: UTF8.self) }
  }
}
