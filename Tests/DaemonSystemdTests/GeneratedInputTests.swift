// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonSystemd

/// Inputs made from a seed: no parser crashes, what it refuses it explains, what it takes it has understood. Five
/// thousand each by default, a million each with `FUZZ_INPUTS=1000000`.
@Suite(.offThePool) struct GeneratedInputTests {
  private func environment(_ variables: [String: String]) -> ServiceEnvironment {
    ServiceEnvironment(variables, processID: 100, processInode: 5000)
  }

  /// Runs a parser on all inputs. `isRight` judges what it has made of one. Of both kinds there must be many, or the
  /// inputs are no good.
  private func check<T>(
    _ name: String, _ mutator: ByteMutator, parse: (String) throws(SystemdError) -> T,
    isRight: (String, T) -> Bool
  ) {
    var mutator = mutator
    var taken = 0
    var refused = 0
    for _ in 0..<ByteMutator.inputs {
      let text = mutator.text()
      do throws(SystemdError) {
        let value = try parse(text)
        taken += 1
        if !isRight(text, value) {
          Issue.record("\(name)=\(text.debugDescription) became \(value)")
        }
      } catch {
        refused += 1
        // Compared as bytes: it is faster, and a stray mark would join with the period.
        let sentence = error.description.utf8
        if sentence.last != UInt8(ascii: ".")
          || !sentence.starts(with: "The environment variable ".utf8)
        {
          Issue.record("\(name)=\(text.debugDescription) is refused without a sentence: \(error)")
        }
      }
    }
    #expect(
      taken > ByteMutator.inputs / 100 && refused > ByteMutator.inputs / 100,
      "\(taken) taken, \(refused) not")
  }

  /// Digits without leading zeros.
  private func normal(_ digits: some StringProtocol) -> String {
    let rest = digits.drop { $0 == "0" }
    return rest.isEmpty ? "0" : String(rest)
  }

  // MARK: The environment

  @Test func namesOfPassedDescriptors() {
    let mutator = ByteMutator(
      seed: 1, ["a", "http:admin", "a:b:c", ":", "unknown:stored:connection", "x:x"])
    check("LISTEN_FDNAMES", mutator) { text throws(SystemdError) in
      let count = text.utf8.count { $0 == UInt8(ascii: ":") } + 1
      let variables = ["LISTEN_PID": "100", "LISTEN_FDS": String(count), "LISTEN_FDNAMES": text]
      return try environment(variables).passedDescriptorNames
    } isRight: {
      $1.joined(separator: ":") == $0
        && $1.allSatisfy { $0.utf8.allSatisfy { $0 >= 32 && $0 < 127 } }
    }
  }

  @Test(arguments: ["LISTEN_PID", "LISTEN_FDS", "LISTEN_PIDFDID"])
  func numbersOfPassedDescriptors(name: String) {
    let mutator = ByteMutator(seed: 2, ["100", "3", "5000", "1", "2147483648"])
    check(name, mutator) { text throws(SystemdError) in
      var variables = ["LISTEN_PID": "100", "LISTEN_FDS": "3", "LISTEN_PIDFDID": "5000"]
      variables[name] = text
      // A large count would be as many names here; that it is taken is tested on its own.
      if name == "LISTEN_FDS", text.utf8.count > 4 { variables["LISTEN_FDNAMES"] = "a:b:c" }
      return try environment(variables).passedDescriptorNames
    } isRight: { text, names in
      switch name {
      case "LISTEN_FDS": normal(text) == String(names.count)
      case "LISTEN_PID": names.count == (normal(text) == "100" ? 3 : 0)
      default: names.count == (normal(text) == "5000" ? 3 : 0)
      }
    }
  }

  @Test func directories() {
    let mutator = ByteMutator(
      seed: 3, ["/var/lib/a", "/a:/b", "/run/user/1000/x:/y:/z", "/"], tokens: ["..", ":/"])
    check("STATE_DIRECTORY", mutator) { text throws(SystemdError) in
      try environment(["STATE_DIRECTORY": text]).stateDirectories
    } isRight: { text, list in
      list.joined(separator: ":").utf8.elementsEqual(text.utf8)
        && list.allSatisfy { $0.utf8.first == UInt8(ascii: "/") && !$0.utf8.contains(0) }
    }
  }

  @Test func watchdogPeriods() {
    let mutator = ByteMutator(seed: 4, ["20000000", "1", "0", "18446744073709551614", "3000001"])
    check("WATCHDOG_USEC", mutator) { text throws(SystemdError) in
      try environment(["WATCHDOG_USEC": text, "WATCHDOG_PID": "100"]).watchdogPeriod
    } isRight: { text, period in
      guard let period else { return normal(text) == "0" }
      let (seconds, attoseconds) = period.components
      let microseconds = UInt64(seconds) * 1_000_000 + UInt64(attoseconds / 1_000_000_000_000)
      return String(microseconds) == normal(text)
    }
  }

  @Test func pressurePaths() {
    let mutator = ByteMutator(
      seed: 6, ["/dev/null", "/sys/fs/cgroup/a.slice/memory.pressure", "/run/x"])
    check("MEMORY_PRESSURE_WATCH", mutator) { text throws(SystemdError) in
      try environment(["MEMORY_PRESSURE_WATCH": text]).pressureWatch
    } isRight: { text, watch in
      guard let watch else { return false }
      return watch.path.utf8.elementsEqual(text.utf8) && watch.isOff == (text == "/dev/null")
    }
  }

  @Test func pressureBytesInBase64() {
    let mutator = ByteMutator(
      seed: 7, ["c29tZSAxMjMwMDAgMjAwMDAwMAA=", "", "AA==", "AAA=", "AAAA", "/+8=", "Zm9v\nYmFy"],
      tokens: ["=", "==", "AAAA", "_"])
    check("MEMORY_PRESSURE_WRITE", mutator) { text throws(SystemdError) in
      try environment(["MEMORY_PRESSURE_WATCH": "/x", "MEMORY_PRESSURE_WRITE": text]).pressureWatch
    } isRight: { text, watch in
      guard let watch else { return false }
      let compact = text.utf8.filter { $0 != 0x20 && !(0x09...0x0d).contains($0) }
      return base64(of: watch.write) == compact
    }
  }

  @Test func journalStreams() {
    let mutator = ByteMutator(seed: 8, ["9:26412", "0:0", "18446744073709551615:1", "12:345"])
    check("JOURNAL_STREAM", mutator) { text throws(SystemdError) in
      try environment(["JOURNAL_STREAM": text]).journalStream
    } isRight: { text, stream in
      guard let stream else { return false }
      let parts = text.split(separator: ":").map { normal($0) }
      return parts == [String(stream.device), String(stream.inode)]
    }
  }

  @Test func notifyAddresses() {
    let mutator = ByteMutator(
      seed: 9,
      ["/run/systemd/notify", "@name", "vsock:2:1234", "@\u{301}x"],
      tokens: ["vsock", String(repeating: "x", count: 100)])
    check("NOTIFY_SOCKET", mutator) { text throws(SystemdError) in
      if text.isEmpty {
        throw .malformedVariable(name: "NOTIFY_SOCKET", value: "", reason: "is empty")
      }
      _ = try NotifySocket(address: text)
      return try NotifyAddress(text)
    } isRight: { text, address in
      "\(address.isAbstract ? "@" : "")\(address.name)".utf8.elementsEqual(text.utf8)
        && (1...107).contains(address.name.utf8.count)
    }
  }

  @Test func wholeEnvironments() {
    var mutator = ByteMutator(
      seed: 10, ["/run/x", "1:2", "100", "AAA=", "@a", "/a:/b", "0123456789abcdef0123456789abcdef"])
    let names = [
      "NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "WATCHDOG_USEC", "FDSTORE", "LISTEN_PID",
      "CREDENTIALS_DIRECTORY", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "SYSTEMD_EXEC_PID",
      "NOTIFY_FD", "STATE_DIRECTORY", "LOGS_DIRECTORY",
    ]
    for _ in 0..<ByteMutator.inputs / 20 {
      let variables = Dictionary(uniqueKeysWithValues: names.map { ($0, mutator.text()) })
      for problem in environment(variables).problems {
        guard case .malformedVariable(let name, let value, _) = problem, variables[name] == value
        else {
          Issue.record("\(problem)")
          continue
        }
      }
    }
  }

  // MARK: Notifications

  @Test func notificationsAsTheManagerReadsThem() {
    var mutator = ByteMutator(
      seed: 11,
      [
        "READY=1", "RELOADING=1\nMONOTONIC_USEC=5", "STOPPING=1\nSTATUS=bye",
        "FDSTORE=1\nFDNAME=a\nFDPOLL=0",
        "WATCHDOG=1", "FDSTOREREMOVE=1\nFDNAME=x", "MAINPID=7\nMAINPIDFDID=9", "X_A=1", "BARRIER=1",
        "ERRNO=2\n",
      ], tokens: ["FDNAME=", "STATUS=", "READY=1\n", "\r\n"])
    var clean = 0
    for _ in 0..<ByteMutator.inputs {
      let bytes = mutator.bytes()
      let count = mutator.below(3)
      let message = FakeServiceManager.Message(bytes: bytes, descriptorCount: count, senderPID: 100)
      var rules = NotificationRules()
      let (action, removes) = rules.take(message, now: 10)
      if rules.violations.isEmpty { clean += 1 }
      if let sentence = rules.violations.first(where: { !$0.hasSuffix("]") }) {
        Issue.record("\(sentence)")
      }
      if case .store(let name, _) = action {
        #expect(DescriptorName.isValid(name.utf8) && message["FDSTORE"] == "1")
      }
      if let removes { #expect(DescriptorName.isValid(removes.utf8)) }
      let known = ["READY", "RELOADING", "STOPPING", "STATUS"].contains { message[$0] != nil }
      if !known {
        #expect(rules.service.status.isEmpty && !rules.service.isReady && !rules.service.isStopping)
      }
    }
    #expect(clean > ByteMutator.inputs / 100)
  }

  /// Whatever is sent, the manager reads those fields and no others.
  @Test func nothingSentIsMisread() throws {
    var mutator = ByteMutator(
      seed: 12, ["a", "Serving", "x\nREADY=1", "org.example.Error", "X_NAME", "\r", "👩‍👩‍👧", "1\0"],
      tokens: ["\nSTOPPING=1", "STATUS=", ".", "_"])
    var sent = 0
    for _ in 0..<ByteMutator.inputs {
      var fields: [NotifyField] = []
      for _ in 0...mutator.below(3) { fields.append(field(&mutator)) }
      guard let sending = try? NotifyMessage(fields) else { continue }
      sent += 1
      let message = FakeServiceManager.Message(bytes: sending.bytes, senderPID: 100)
      let names = sending.bytes.split(separator: UInt8(ascii: "\n"))
        .map { String(decoding: $0.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self) }
      let wanted = try fields.flatMap { try $0.lines().map(\.name) }
      #expect(names.sorted() == wanted.sorted())
      var rules = NotificationRules()
      _ = rules.take(.init(bytes: Array("READY=1".utf8), senderPID: 100), now: 1)
      _ = rules.take(message, now: .max)
      let violations = rules.violations.filter { !$0.contains("is unknown; a private field") }
      #expect(violations == [], "\(fields)")
    }
    #expect(sent > ByteMutator.inputs / 10)
  }

  private func field(_ mutator: inout ByteMutator) -> NotifyField {
    let number = mutator.number()
    let systemds = ["MAINPID", "ERRNO", "BUSERROR", "NOTIFYACCESS", "WATCHDOG_USEC"]
    switch mutator.below(8) {
    case 0: return .status(mutator.text())
    case 1: return .custom(name: "X_A", value: mutator.text())
    case 2: return .custom(name: mutator.text(), value: "1")
    case 3: return .custom(name: systemds[mutator.below(5)], value: mutator.text())
    case 4: return .extendTimeout(.nanoseconds(Int64(bitPattern: number) >> (number & 63)))
    case 5: return .reloading(at: number)
    case 6: return [.ready, .stopping, .watchdog, .restartReset][mutator.below(4)]
    default: return .exitStatus(Int32(truncatingIfNeeded: number >> 56))
    }
  }
}
