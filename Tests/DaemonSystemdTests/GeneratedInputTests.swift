// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import TestSupport
import Testing

@testable import DaemonSystemd

/// Inputs made from a seed: no parser crashes, what it refuses it explains, what it takes it has understood. Five
/// thousand each by default, a million each with `FUZZ_INPUTS=1000000`.
@Suite(.offThePool) struct GeneratedInputTests {
  private func environment(_ variables: [String: String]) -> ServiceEnvironment {
    ServiceEnvironment(variables, processID: 100)
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

  @Test(arguments: ["LISTEN_PID", "LISTEN_FDS"])
  func numbersOfPassedDescriptors(name: String) {
    let mutator = ByteMutator(seed: 2, ["100", "3", "1", "2147483648"])
    check(name, mutator) { text throws(SystemdError) in
      var variables = ["LISTEN_PID": "100", "LISTEN_FDS": "3"]
      variables[name] = text
      // A large count would be as many names here; that it is taken is tested on its own.
      if name == "LISTEN_FDS", text.utf8.count > 4 { variables["LISTEN_FDNAMES"] = "a:b:c" }
      return try environment(variables).passedDescriptorNames
    } isRight: { text, names in
      name == "LISTEN_FDS"
        ? normal(text) == String(names.count)
        : names.count == (normal(text) == "100" ? 3 : 0)
    }
  }

  @Test func directories() {
    let mutator = ByteMutator(
      seed: 3, ["/var/lib/a", "/a:/b", "/run/user/1000/x:/y:/z", "/"], tokens: ["..", ":/"])
    check("STATE_DIRECTORY", mutator) { text throws(SystemdError) in
      try environment(["STATE_DIRECTORY": text]).directories(in: "STATE_DIRECTORY")
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
      return Array(Data(watch.write).base64EncodedString().utf8) == compact
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
      return try NotifyAddress(text)
    } isRight: { text, address in
      "\(address.isAbstract ? "@" : "")\(address.name)".utf8.elementsEqual(text.utf8)
        && (1...107).contains(address.name.utf8.count)
    }
  }
}
