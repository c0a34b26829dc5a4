public struct ServiceEnvironment: Sendable {
  public static let current = ServiceEnvironment()
  public var notifySocket: String? { nil }
  public var watchdogPeriod: Duration? { get throws(SystemdError) { nil } }
  public var isSupervised: Bool { false }
  public var journalStream: JournalStream? { get throws(SystemdError) { nil } }
}
