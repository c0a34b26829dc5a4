/// The directories that the service manager has made for this service.
extension ServiceEnvironment {
  /// `StateDirectory=`: what must survive (`STATE_DIRECTORY`, 244), absolute, in the unit's order; empty when unset.
  public var stateDirectories: [String] {
    get throws(SystemdError) { try directories(in: "STATE_DIRECTORY") }
  }

  /// `RuntimeDirectory=`: what may go when the service stops (`RUNTIME_DIRECTORY`, 244).
  public var runtimeDirectories: [String] {
    get throws(SystemdError) { try directories(in: "RUNTIME_DIRECTORY") }
  }

  /// `CacheDirectory=`: what can be made again (`CACHE_DIRECTORY`, 244).
  public var cacheDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CACHE_DIRECTORY") }
  }

  /// `LogsDirectory=` (`LOGS_DIRECTORY`, 244).
  public var logsDirectories: [String] {
    get throws(SystemdError) { try directories(in: "LOGS_DIRECTORY") }
  }

  /// `ConfigurationDirectory=` (`CONFIGURATION_DIRECTORY`, 244).
  public var configurationDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CONFIGURATION_DIRECTORY") }
  }

  /// `LoadCredential=` and the like (`CREDENTIALS_DIRECTORY`, 247), for ``Credentials``.
  public var credentialsDirectory: String? {
    get throws(SystemdError) { try absolutePath(in: "CREDENTIALS_DIRECTORY") }
  }

  static let directoryVariables = [
    "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY",
    "CONFIGURATION_DIRECTORY",
  ]

  /// A list separated by ':', which a path of these can't have in it.
  func directories(in name: String) throws(SystemdError) -> [String] {
    guard let list = variables[name] else { return [] }
    guard !list.utf8.contains(0) else { throw malformed(name, "has a NUL byte in it") }
    let parts = list.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    for part in parts where part.first != UInt8(ascii: "/") {
      throw malformed(name, "is not a list of absolute paths separated by ':'")
    }
    return parts.map { String(decoding: $0, as: UTF8.self) }
  }
}
