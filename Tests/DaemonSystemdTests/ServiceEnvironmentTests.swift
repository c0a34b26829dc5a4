// SPDX-License-Identifier: Apache-2.0
import CLinux
import Testing

@testable import DaemonSystemd

@Suite struct ServiceEnvironmentTests {
  private func environment(_ variables: [String: String]) -> ServiceEnvironment {
    ServiceEnvironment(variables, processID: 100)
  }

  @Test func withoutVariablesThereIsNothing() throws {
    let empty = environment([:])
    #expect(empty.problems.isEmpty)
    #expect(!empty.isSupervised)
    #expect(try empty.notifySocket == nil && !empty.isMainProcess && empty.watchdogPeriod == nil)
    #expect(
      try empty.stateDirectories.isEmpty && empty.passedDescriptorNames.isEmpty)
    #expect(try empty.pressureWatch == nil)
    #expect(try empty.fdStoreLimit == nil && empty.journalStream == nil)
  }

  @Test func aServicesVariablesAreRead() throws {
    let service = environment([
      "NOTIFY_SOCKET": "/run/systemd/notify",
      "INVOCATION_ID": "0123456789abcdef0123456789ABCDEF",
      "SYSTEMD_EXEC_PID": "100",
      "WATCHDOG_USEC": "20000001", "WATCHDOG_PID": "100",
      "STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "RUNTIME_DIRECTORY": "/run/a",
      "FDSTORE": "12", "JOURNAL_STREAM": "9:26412",
      "CREDENTIALS_DIRECTORY": "/run/credentials/a.service",
      "MEMORY_PRESSURE_WATCH": "/sys/fs/cgroup/a/memory.pressure",
      "MEMORY_PRESSURE_WRITE": "c29tZSAxMjMwMDAgMjAwMDAwMAA=",
      "DEBUG_INVOCATION": "1",
    ])
    #expect(service.problems.isEmpty)
    #expect(service.isSupervised)
    #expect(try service.notifySocket == "/run/systemd/notify")
    #expect(try service.isMainProcess)
    #expect(try service.watchdogPeriod == .microseconds(20_000_001))
    #expect(try service.stateDirectories == ["/var/lib/a", "/var/lib/b"])
    #expect(try service.runtimeDirectories == ["/run/a"])
    #expect(try service.credentialsDirectory == "/run/credentials/a.service")
    #expect(try service.fdStoreLimit == 12)
    #expect(try service.journalStream == FileIdentity(device: 9, inode: 26412))
    let memory = try #require(try service.pressureWatch)
    #expect(memory.path == "/sys/fs/cgroup/a/memory.pressure" && !memory.isOff)
    #expect(memory.write == Array("some 123000 2000000\0".utf8))
    // Of one that is off, what would be written is not read.
    let off = environment(["MEMORY_PRESSURE_WATCH": "/dev/null", "MEMORY_PRESSURE_WRITE": "="])
    #expect(try off.pressureWatch?.isOff == true)
  }

  @Test func theWatchdogOfAnotherProcessIsNotOurs() throws {
    #expect(try environment(["WATCHDOG_USEC": "5", "WATCHDOG_PID": "99"]).watchdogPeriod == nil)
    #expect(try environment(["WATCHDOG_USEC": "5"]).watchdogPeriod == .microseconds(5))
    #expect(try environment(["WATCHDOG_USEC": "0"]).watchdogPeriod == nil)
    let longest = try environment(["WATCHDOG_USEC": "18446744073709551614"]).watchdogPeriod
    #expect(longest == .seconds(18_446_744_073_709) + .microseconds(551_614))
  }

  @Test func anInheritedInvocationIsNotSupervision() {
    let id = "0123456789abcdef0123456789abcdef"
    #expect(!environment(["INVOCATION_ID": id, "SYSTEMD_EXEC_PID": "99"]).isSupervised)
    #expect(environment(["INVOCATION_ID": id, "SYSTEMD_EXEC_PID": "100"]).isSupervised)
    #expect(environment(["INVOCATION_ID": id]).isSupervised)
    #expect(!environment(["NOTIFY_SOCKET": ""]).isSupervised)
    #expect(!environment(["NOTIFY_SOCKET": "5"]).isSupervised)
    #expect(environment(["NOTIFY_SOCKET": "5", "INVOCATION_ID": id]).isSupervised)
  }

  @Test func aDebugInvocationIsWhatSystemdSets() {
    #expect(environment(["DEBUG_INVOCATION": "1"]).isDebugInvocation)
    #expect(!environment(["DEBUG_INVOCATION": "0"]).isDebugInvocation)
    #expect(!environment([:]).isDebugInvocation)
    #expect(environment(["DEBUG_INVOCATION": "0"]).problems.isEmpty)
  }

  private static let malformed: [(String, [String])] = [
    ("NOTIFY_SOCKET", ["x", "@", "vsock:1"]),
    ("NOTIFY_FD", ["1", "-1", "x", "4 "]),
    ("SYSTEMD_EXEC_PID", ["", "0", "-1", "1 ", "99999999999"]),
    ("WATCHDOG_PID", ["", "x", "+5"]),
    ("WATCHDOG_USEC", ["", "-1", "5s", "18446744073709551615", "18446744073709551616"]),
    ("FDSTORE", ["", "many", "-1"]),
    ("JOURNAL_STREAM", ["", ":", "9", "9:", ":9", "9:1:2", "a:1", "-1:2", "9: 1", "1:+2"]),
    ("CREDENTIALS_DIRECTORY", ["", "run", "/a\0b"]),
    ("STATE_DIRECTORY", ["", "a", "/a:b", "/a:", ":/a", "/a::/b"]),
    ("LOGS_DIRECTORY", ["./x"]),
    ("MEMORY_PRESSURE_WATCH", ["", "memory.pressure"]),
    ("LISTEN_PID", ["", "me"]),
    ("DEBUG_INVOCATION", ["", "yes", "2"]),
  ]

  @Test func everyMalformedVariableIsOneProblemThatNamesIt() {
    for (name, values) in ServiceEnvironmentTests.malformed {
      for value in values where !(name == "NOTIFY_SOCKET" && value.isEmpty) {
        let problems = environment([name: value]).problems
        #expect(problems.count == 1, "\(name)=\(value): \(problems)")
        guard case .malformedVariable(name, value, _)? = problems.first else {
          Issue.record("\(name)=\(value): \(problems)")
          continue
        }
        #expect(problems[0].description.hasPrefix("The environment variable \(name) is"))
      }
    }
    let name = "MEMORY_PRESSURE_WRITE"
    let problems = environment(["MEMORY_PRESSURE_WATCH": "/x", name: "="]).problems
    #expect(problems == [.malformedVariable(name: name, value: "=", reason: "is not Base64")])
  }

  @Test func base64IsReadStrictly() {
    let good: [(String, String)] = [
      ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9v\nYmFy", "foobar"),
      ("\t\n\u{b}\u{c}\r Zg==", "f"),
      ("/+8=", "\u{ff}\u{ef}"), ("AZaz", "\u{1}\u{96}\u{b3}"), ("09+/", "\u{d3}\u{df}\u{bf}"),
    ]
    for (text, bytes) in good {
      #expect(decodeBase64(text.utf8) == bytes.unicodeScalars.map { UInt8($0.value) })
    }
    for text in [
      "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Z", "Zm=v", "=", "Zm9v!", "Zm9v-_==", "====",
      "Zm9v\u{8}", "Zm9v\u{e}", "Zm9v\u{1f}", "Zm9@", "Zm9[", "Zm9`", "Zm9{", "Zm9:", "Zm9,",
    ] {
      #expect(decodeBase64(text.utf8) == nil, "\(text)")
    }
  }

  @Test func theProcesssOwnEnvironmentIsRead() {
    let own = ServiceEnvironment.current
    #expect(own.processID == getpid())
    #expect(own.variables["PATH"] == getenv("PATH").map { String(cString: $0) })
  }

  @Test func theFirstOfTwoCountsAndWhatIsNotTextIsAProblem() {
    let lines: [[UInt8]] = [
      Array("A=1".utf8), Array("A=2".utf8), Array("NONE".utf8), Array("B=x=y".utf8),
      Array("C=".utf8) + [0xff], Array("D=ä\u{7f}".utf8),
    ]
    var pointers =
      lines.map { line in strdup(line.map { CChar(truncatingIfNeeded: $0) } + [0]) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    let environment = pointers.withUnsafeMutableBufferPointer {
      ServiceEnvironment(reading: $0.baseAddress)
    }
    #expect(environment.variables == ["A": "1", "B": "x=y", "C": "\u{fffd}", "D": "ä\u{7f}"])
    #expect(environment.childEnvironment() == ["A": "1", "B": "x=y", "D": "ä\u{7f}"])
    #expect(
      environment.problems == [
        .malformedVariable(name: "C", value: "\u{fffd}", reason: "is not UTF-8")
      ])
    #expect(ServiceEnvironment(reading: nil).variables.isEmpty)
  }

  // MARK: LISTEN_*

  @Test func passedDescriptorsAreForTheirProcessOnly() throws {
    for count in ["1000000000", String(clinux_descriptor_limit() + 1)] {
      #expect(throws: SystemdError.self, "names for so many would fill memory") {
        try environment(["LISTEN_PID": "100", "LISTEN_FDS": count]).passedDescriptorNames
      }
    }
    let cases: [([String: String], [String])] = [
      (
        ["LISTEN_PID": "100", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:admin"], ["http", "admin"]
      ),
      (["LISTEN_PID": "101", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:a"], []),
      (["LISTEN_PID": "100", "LISTEN_FDS": "1"], ["unknown"]),
      (["LISTEN_FDS": "1"], []),
      (["LISTEN_PID": "100", "LISTEN_FDS": "2", "LISTEN_FDNAMES": ":"], ["", ""]),
    ]
    for (variables, names) in cases {
      #expect(try environment(variables).passedDescriptorNames == names)
    }
  }

  /// In another namespace, or earlier, another process may have this one's pid.
  @Test func passedDescriptorsAreNotOfAnotherProcessWithThePid() throws {
    let number = clinux_process_number(getpid())
    for (passed, count) in [(number, 1), (number &+ 1, number == 0 ? 1 : 0)] {
      let environment = ServiceEnvironment([
        "LISTEN_PID": "\(getpid())", "LISTEN_PIDFDID": "\(passed)", "LISTEN_FDS": "1",
      ])
      #expect(try environment.passedDescriptorNames.count == count)
    }
  }

  @Test func contradictoryListsAreErrors() {
    for (fds, names) in [
      ("2", "a"), ("1", "a:b"), ("1", "ä"), ("x", "a"), ("-1", "a"), ("2147483647", "a"),
    ] {
      let variables = ["LISTEN_PID": "100", "LISTEN_FDS": fds, "LISTEN_FDNAMES": names]
      #expect(throws: SystemdError.self) { try environment(variables).passedDescriptorNames }
    }
  }
}
