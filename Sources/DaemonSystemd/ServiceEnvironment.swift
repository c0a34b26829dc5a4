// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The variables that the service manager sets for this process, typed and checked.
///
/// ```swift
/// let environment = ServiceEnvironment.current
/// for problem in environment.problems { print(problem) }
/// let folders = try environment.stateDirectories
/// let state = folders.first ?? "/var/lib/mydaemon"
/// ```
///
/// A variable that is not set gives `nil` or an empty list; a malformed one gives an error that names it, never a
/// default. The variables are read once and never changed, since unsetting them is not safe while other threads run.
/// ``childEnvironment(adding:)`` returns those for children.
///
/// A process with privileges that its caller may lack (setuid, setgid, file capabilities) does not read its
/// environment, since the caller controls it: ``variables`` is empty, also for children. A service should receive
/// privileges from its unit instead, with `User=` and `AmbientCapabilities=`.
///
/// Source: systemd.exec(5) of systemd 261. Safe to use from any thread.
public struct ServiceEnvironment: Sendable {
  /// The names of the variables, in their order. They are a list, since a daemon reads few of them: making a dictionary
  /// would take longer.
  private let names: [String]
  /// The value of each name.
  private let values: [String]
  package let processID: Int32
  /// Whether the environment is not read (AT_SECURE of getauxval(3)).
  package let isWithheld: Bool
  /// The names of the variables that are not UTF-8.
  private(set) var notText: [String] = []

  /// The environment of this process, read at the first access.
  ///
  /// It includes changes that `setenv` made before, but not later ones.
  public static let current = ServiceEnvironment(
    reading: clinux_environment(), isWithheld: clinux_is_secure())

  /// Makes an environment from variables, by name, for tests.
  public init(_ variables: [String: String]) {
    self.init(variables, processID: getpid())
  }

  /// Makes the environment of another process, for tests.
  package init(_ variables: [String: String], processID: Int32) {
    names = Array(variables.keys)
    values = Array(variables.values)
    self.processID = processID
    isWithheld = false
  }

  init(
    reading start: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, isWithheld: Bool = false
  ) {
    var (names, values): ([String], [String]) = ([], [])
    var next = start
    while let pointer = next, let entry = pointer.pointee {
      // Read at once: the C library owns the text.
      let bytes = UnsafeRawBufferPointer(start: entry, count: strlen(entry))
      next = pointer + 1
      guard let sign = bytes.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<sign]), as: UTF8.self)
      let value = UnsafeRawBufferPointer(rebasing: bytes[(sign + 1)...])
      if !Self.isText(bytes), !names.contains(name) { notText.append(name) }
      names.append(name)
      values.append(String(decoding: value, as: UTF8.self))
    }
    (self.names, self.values) = (names, values)
    self.isWithheld = isWithheld
    processID = getpid()
  }

  private static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Nearly always ASCII, which is faster to check.
    bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
  }

  // MARK: Variables

  /// All variables by name; the first one where a name occurs twice. The dictionary is made at each access.
  public var variables: [String: String] {
    Dictionary(zip(names, values)) { first, _ in first }
  }

  /// The value of a variable; `nil` when it is not set.
  package subscript(name: String) -> String? { names.firstIndex(of: name).map { values[$0] } }

  // MARK: Supervision

  /// Whether a service manager has started this process and supervises it.
  ///
  /// It is true with a `NOTIFY_SOCKET` that is an address, and with an `INVOCATION_ID` that was not inherited from a
  /// parent. A `NOTIFY_SOCKET` that is no address, such as the number that an old Finit sets, is ignored.
  public var isSupervised: Bool {
    if (try? notifySocket) != nil { return true }
    guard self["INVOCATION_ID"] != nil else { return false }
    guard let pid = self["SYSTEMD_EXEC_PID"] else { return true }  // before systemd 248
    return decimal(pid.utf8) == processID
  }

  /// Whether systemd requests that this run logs more than usual (`DEBUG_INVOCATION`, systemd 257): the unit has
  /// `RestartMode=debug`, and an attempt to start it has failed.
  ///
  /// It is true for `1`, systemd's value. Any value but `1` and `0` is one of the ``problems``.
  public var isDebugInvocation: Bool { self["DEBUG_INVOCATION"] == "1" }

  /// Whether systemd has executed this process itself, rather than a parent of it (`SYSTEMD_EXEC_PID`, systemd 248).
  ///
  /// - Throws: `malformedVariable`.
  package var isMainProcess: Bool {
    get throws(SystemdError) { try self.processID(in: "SYSTEMD_EXEC_PID") == processID }
  }

  /// The address for notifications (`NOTIFY_SOCKET`), which ``NotifySocket`` uses; `nil` without a service manager.
  ///
  /// - Throws: `malformedVariable`.
  package var notifySocket: String? {
    get throws(SystemdError) {
      guard let address = self["NOTIFY_SOCKET"], !address.isEmpty else { return nil }
      _ = try NotifyAddress(address)
      return address
    }
  }

  /// The longest time between two pings that the watchdog allows (`WATCHDOG_USEC`, `WATCHDOG_PID`); `nil` when it is
  /// off or meant for another process. Send pings twice as often.
  ///
  /// - Throws: `malformedVariable`.
  public var watchdogPeriod: Duration? {
    get throws(SystemdError) {
      let pid = try self.processID(in: "WATCHDOG_PID")
      guard let period: UInt64 = try number(in: "WATCHDOG_USEC") else { return nil }
      guard period < UInt64.max else {
        throw malformed("WATCHDOG_USEC", "means infinity, which is no period")
      }
      guard period > 0, pid == nil || pid == processID else { return nil }
      return Duration(
        secondsComponent: Int64(period / 1_000_000),
        attosecondsComponent: Int64(period % 1_000_000) * 1_000_000_000_000)
    }
  }

  /// The number of descriptors that the service manager stores (`FDSTORE`, systemd 254); `nil` when it stores none.
  ///
  /// - Throws: `malformedVariable`.
  package var fdStoreLimit: Int? {
    get throws(SystemdError) { try number(in: "FDSTORE") }
  }

  /// The identity that standard output or standard error has if it goes to the journal (`JOURNAL_STREAM`, systemd 231).
  /// Compare it with fstat(2) of the descriptor: a shell may have redirected it.
  package var journalStream: FileIdentity? {
    get throws(SystemdError) {
      guard let text = self["JOURNAL_STREAM"] else { return nil }
      let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        .map { decimal($0, as: UInt64.self) }
      guard parts.count == 2, let device = parts[0], let inode = parts[1] else {
        throw malformed(
          "JOURNAL_STREAM", "is not a device and an inode number with a colon between")
      }
      return FileIdentity(device: device, inode: inode)
    }
  }

  // MARK: Directories

  // Each throws `malformedVariable` when a path is not absolute (systemd 244).

  /// The directories of `StateDirectory=`, in /var/lib, for data that has to survive. Empty when there are none.
  public var stateDirectories: [String] {
    get throws(SystemdError) { try directories(in: "STATE_DIRECTORY") }
  }

  /// The directories of `RuntimeDirectory=`, in /run, which end with the service. Empty when there are none.
  public var runtimeDirectories: [String] {
    get throws(SystemdError) { try directories(in: "RUNTIME_DIRECTORY") }
  }

  /// The directories of `CacheDirectory=`, in /var/cache. Empty when there are none.
  public var cacheDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CACHE_DIRECTORY") }
  }

  /// The directories of `LogsDirectory=`, in /var/log. Empty when there are none.
  public var logsDirectories: [String] {
    get throws(SystemdError) { try directories(in: "LOGS_DIRECTORY") }
  }

  /// The directories of `ConfigurationDirectory=`, in /etc. Empty when there are none.
  public var configurationDirectories: [String] {
    get throws(SystemdError) { try directories(in: "CONFIGURATION_DIRECTORY") }
  }

  /// A list of absolute paths separated by ':', which none of them can contain.
  package func directories(in name: String) throws(SystemdError) -> [String] {
    guard let list = self[name] else { return [] }
    guard !list.utf8.contains(0) else { throw malformed(name, "has a NUL byte in it") }
    let parts = list.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    for part in parts where part.first != UInt8(ascii: "/") {
      throw malformed(name, "is not a list of absolute paths separated by ':'")
    }
    return parts.map { String(decoding: $0, as: UTF8.self) }
  }

  /// The directory with the credentials of `LoadCredential=` and similar settings (`CREDENTIALS_DIRECTORY`, 247), a
  /// file for each; `nil` when unset.
  ///
  /// Read them when they are needed, since systemd 260 can renew them on reload.
  ///
  /// - Throws: `malformedVariable` when the path is not absolute.
  public var credentialsDirectory: String? {
    get throws(SystemdError) { try absolutePath(in: "CREDENTIALS_DIRECTORY") }
  }

  // MARK: Problems

  /// The errors of all malformed variables.
  public var problems: [SystemdError] {
    var found = notText.sorted().map {
      SystemdError.malformedVariable(name: $0, value: self[$0] ?? "", reason: "is not UTF-8")
    }
    func check<T>(_ read: @autoclosure () throws(SystemdError) -> T) {
      do { _ = try read() } catch { found.append(error) }
    }
    check(try notifySocket)
    check(try readinessDescriptor)
    check(try isMainProcess)
    check(try watchdogPeriod)
    check(try fdStoreLimit)
    check(try passedDescriptorNames)
    check(try journalStream)
    check(try credentialsDirectory)
    for kind in ["STATE", "RUNTIME", "CACHE", "LOGS", "CONFIGURATION"] {
      check(try directories(in: "\(kind)_DIRECTORY"))
    }
    check(try pressureWatch)
    if let value = self["DEBUG_INVOCATION"], value != "0", value != "1" {
      found.append(malformed("DEBUG_INVOCATION", "is neither 0 nor 1"))
    }
    return found
  }

  // MARK: Reading

  func malformed(_ name: String, _ reason: String) -> SystemdError {
    .malformedVariable(name: name, value: self[name] ?? "", reason: reason)
  }

  func number<Number: FixedWidthInteger>(in name: String) throws(SystemdError) -> Number? {
    guard let text = self[name] else { return nil }
    guard let number: Number = decimal(text.utf8) else {
      throw malformed(name, "is not a decimal number up to \(Number.max)")
    }
    return number
  }

  func processID(in name: String) throws(SystemdError) -> Int32? {
    guard let text = self[name] else { return nil }
    guard let number: Int32 = decimal(text.utf8), number > 0 else {
      throw malformed(name, "is not the number of a process")
    }
    return number
  }

  func absolutePath(in name: String) throws(SystemdError) -> String? {
    guard let path = self[name] else { return nil }
    guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
      throw malformed(name, "is not an absolute path")
    }
    return path
  }
}
