public import DaemonLifecycle

/// The status, why, and the reports.
///
///     {"cause":{…},"code":0,"report":{…}}
///     {"cause":{…},"code":70,"error":{…},"failedLaunch":{…},"report":{…}}
///
/// `failedLaunch` is the report of a launch that ended the daemon, `error` what the body of `run` threw: as a
/// ``RecordedError`` when decoded. Decoding throws a `DecodingError` for a key that this version does not know.
extension LifecycleExit: Codable {
  private enum Key: String, CodingKey, CaseIterable {
    case code, cause, report, failedLaunch, error
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(code, forKey: .code)
    try container.encode(cause, forKey: .cause)
    try container.encode(report, forKey: .report)
    try container.encodeIfPresent(failedLaunch, forKey: .failedLaunch)
    try container.encodeIfPresent(error.map { RecordedError($0) }, forKey: .error)
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self, having: Key.allCases)
    self.init(
      code: try container.decode(Int32.self, forKey: .code),
      cause: try container.decode(LifecycleCause.self, forKey: .cause),
      report: try container.decode(LifecycleReport.self, forKey: .report),
      failedLaunch: try container.decodeIfPresent(LifecycleReport.self, forKey: .failedLaunch),
      error: try container.decodeIfPresent(RecordedError.self, forKey: .error))
  }
}
