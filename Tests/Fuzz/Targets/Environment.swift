// SPDX-License-Identifier: Apache-2.0
import CLinux

@testable import DaemonSystemd

extension FuzzTarget {
  /// A block of variables as in `/proc/PID/environ`: what is read of it is what stands there, and each variable is
  /// either understood or named in `problems`, never both.
  static let environment = FuzzTarget(name: "environment") { input in
    var entries: [[UInt8]] = []
    while !input.isEmpty, entries.count < 64 { entries.append(input.part(endedBy: 0)) }
    let read = environment(reading: entries)
    var expected: [String: [UInt8]] = [:]
    for entry in entries {
      guard let sign = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: entry[..<sign], as: UTF8.self)
      if expected[name] == nil { expected[name] = Array(entry[(sign + 1)...]) }
    }
    let texts = expected.mapValues { String(decoding: $0, as: UTF8.self) }
    require(read.variables == texts, "\(read.variables) was read of \(texts)")
    for problem in read.problems { requireMalformed(problem, texts) }
    let child = read.childEnvironment(adding: ["A": "B"])
    require(
      child["A"] == "B" && ServiceEnvironment.ownVariables.isDisjoint(with: child.keys),
      "a child gets \(child)")
    // A byte 1 stands for a NUL, which a real environment can't have.
    let values = texts.mapValues { text in
      String(decoding: text.utf8.map { $0 == 1 ? 0 : $0 }, as: UTF8.self)
    }
    require(ServiceEnvironment(values).variables == values, "\(values) were changed")
    let environment = ServiceEnvironment(values, processID: 100)
    checkValues(environment, values)
    checkInherited(try? environment.readinessDescriptor, environment)
  }

  /// Only what is open for writing and was inherited is taken over.
  private static func checkInherited(_ number: Int32?, _ environment: ServiceEnvironment) {
    var ends: [CInt] = [-1, -1]
    require(pipe(&ends) == 0, "no pipe")
    let (readOnly, inherited) = (ends[0], ends[1])
    defer { close(readOnly) }
    // Numbers below are this program's own.
    let others = number.map { $0 > 1000 ? [$0] : [] } ?? []
    for refused in [1, readOnly] + others {
      do throws(SystemdError) {
        _ = try OwnedDescriptor.takeInherited(refused, from: "NOTIFY_FD", in: environment)
        require(false, "\(refused) was taken over")
      } catch { requireSentence(error) }
    }
    let alone = ServiceEnvironment([:], processID: 1)
    do throws(SystemdError) {
      let taken = try OwnedDescriptor.takeInherited(inherited, from: "NOTIFY_FD", in: alone)
      require(taken.rawValue == inherited, "\(inherited) became \(taken.rawValue)")
      require(
        (try? OwnedDescriptor.takeInherited(inherited, from: "x", in: alone)) == nil,
        "it has two owners")
    } catch { require(false, "\(error)") }
  }

  private static func environment(reading entries: [[UInt8]]) -> ServiceEnvironment {
    var pointers: [UnsafeMutablePointer<CChar>?] = entries.map { entry in
      strdup(entry.map { CChar(truncatingIfNeeded: $0) } + [0])
    }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer {
      ServiceEnvironment(reading: $0.baseAddress)
    }
  }

  private static func requireMalformed(_ problem: SystemdError, _ variables: [String: String]) {
    guard case .malformedVariable(let name, let value, _) = problem else {
      return require(false, "is no variable's problem: \(problem)")
    }
    require(variables[name] == value, "\(name)=\(value) is not what was given")
    requireSentence(problem)
  }

  /// Whether it was understood; what was not is in `problems`.
  private static func isRead(
    _ name: String, _ environment: ServiceEnvironment, _ read: () throws(SystemdError) -> Bool
  ) {
    func isNamed(_ problem: SystemdError) -> Bool {
      if case .malformedVariable(name: name, _, _) = problem { true } else { false }
    }
    do throws(SystemdError) {
      require(try read(), "\(name)=\(environment[name] ?? "") was read as something else")
    } catch {
      require(environment.problems.contains(error), "\(error) is not among the problems")
    }
  }

  private static func checkValues(_ environment: ServiceEnvironment, _ texts: [String: String]) {
    func digits(_ name: String) -> String? { texts[name].flatMap { normalDigits($0.utf8) } }
    for problem in environment.problems { requireMalformed(problem, texts) }
    isRead("WATCHDOG_USEC", environment) { () throws(SystemdError) in
      guard let period = try environment.watchdogPeriod else {
        return digits("WATCHDOG_USEC") ?? "0" == "0" || digits("WATCHDOG_PID") ?? "100" != "100"
      }
      let (seconds, attoseconds) = period.components
      return digits("WATCHDOG_USEC")
        == String(UInt64(seconds) * 1_000_000 + UInt64(attoseconds / 1_000_000_000_000))
    }
    isRead("FDSTORE", environment) { () throws(SystemdError) in
      try environment.fdStoreLimit.map(String.init) == digits("FDSTORE")
    }
    isRead("SYSTEMD_EXEC_PID", environment) { () throws(SystemdError) in
      try environment.isMainProcess == (digits("SYSTEMD_EXEC_PID") == "100")
    }
    isRead("JOURNAL_STREAM", environment) { () throws(SystemdError) in
      guard let stream = try environment.journalStream else {
        return texts["JOURNAL_STREAM"] == nil
      }
      let parts = texts["JOURNAL_STREAM"]?.utf8.split(separator: UInt8(ascii: ":"))
      return parts?.map { normalDigits($0) } == [String(stream.device), String(stream.inode)]
    }
    isRead("NOTIFY_SOCKET", environment) { () throws(SystemdError) in
      try environment.notifySocket ?? "" == texts["NOTIFY_SOCKET"] ?? ""
    }
    isRead("NOTIFY_FD", environment) { () throws(SystemdError) in
      try environment.readinessDescriptor.map(String.init) == digits("NOTIFY_FD")
    }
    require(
      environment.isDebugInvocation == (texts["DEBUG_INVOCATION"] == "1"),
      "DEBUG_INVOCATION was read as something else")
    require(
      !environment.isSupervised || texts["NOTIFY_SOCKET"] != nil || texts["INVOCATION_ID"] != nil,
      "nobody supervises it")
    for kind in ["STATE", "RUNTIME", "CACHE", "LOGS", "CONFIGURATION"] {
      let name = "\(kind)_DIRECTORY"
      isRead(name, environment) { () throws(SystemdError) in
        let list =
          switch kind {
          case "STATE": try environment.stateDirectories
          case "RUNTIME": try environment.runtimeDirectories
          case "CACHE": try environment.cacheDirectories
          case "LOGS": try environment.logsDirectories
          default: try environment.configurationDirectories
          }
        return list.allSatisfy { $0.utf8.first == UInt8(ascii: "/") }
          && list.joined(separator: ":") == texts[name] ?? ""
      }
    }
    isRead("CREDENTIALS_DIRECTORY", environment) { () throws(SystemdError) in
      try environment.credentialsDirectory == texts["CREDENTIALS_DIRECTORY"]
    }
  }
}
