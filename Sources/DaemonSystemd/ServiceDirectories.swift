// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// The directories for persistent state: `StateDirectory=` (`STATE_DIRECTORY`, systemd 244). They are absolute and in
  /// the unit's order; empty when unset.
  ///
  /// - Throws: `malformedVariable` when a path is not absolute.
  public var stateDirectories: [String] {
    get throws(SystemdError) { try directories(in: "STATE_DIRECTORY") }
  }

  /// The directories for files that may be removed when the service stops: `RuntimeDirectory=` (`RUNTIME_DIRECTORY`,
  /// 244). Otherwise as ``stateDirectories``.
  public var runtimeDirectories: [String] {
    get throws(SystemdError) { try directories(in: "RUNTIME_DIRECTORY") }
  }

  /// The directories for caches: `CacheDirectory=` (`CACHE_DIRECTORY`, 244). Otherwise as ``stateDirectories``.
  public var cacheDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CACHE_DIRECTORY") }
  }

  /// The directories for logs: `LogsDirectory=` (`LOGS_DIRECTORY`, 244). Otherwise as ``stateDirectories``.
  public var logsDirectories: [String] {
    get throws(SystemdError) { try directories(in: "LOGS_DIRECTORY") }
  }

  /// The directories for configuration files: `ConfigurationDirectory=` (`CONFIGURATION_DIRECTORY`, 244). Otherwise as
  /// ``stateDirectories``.
  public var configurationDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CONFIGURATION_DIRECTORY") }
  }

  /// The directory with the credentials of `LoadCredential=` and similar settings (`CREDENTIALS_DIRECTORY`, 247); `nil`
  /// when unset. ``Credentials`` reads them.
  ///
  /// - Throws: `malformedVariable` when the path is not absolute.
  public var credentialsDirectory: String? {
    get throws(SystemdError) { try absolutePath(in: "CREDENTIALS_DIRECTORY") }
  }

  static let directoryVariables = [
    "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY",
    "CONFIGURATION_DIRECTORY",
  ]

  /// Returns the paths of a list separated by ':', which none of these paths can contain.
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
