// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonSystemd

@Suite struct NotifyFieldTests {
  private func text(_ fields: [NotifyField]) throws -> String {
    String(decoding: try NotifyMessage(fields).bytes, as: UTF8.self)
  }

  /// One attosecond over 999,999 microseconds.
  private static let nearlyASecond = Duration(
    secondsComponent: 0, attosecondsComponent: 999_999_000_000_000_001)

  private static let lines: [(NotifyField, String)] = [
    (.ready, "READY=1"),
    (.stopping, "STOPPING=1"),
    (.reloading(at: .microseconds(42)), "RELOADING=1\nMONOTONIC_USEC=42"),
    (.status("Serving"), "STATUS=Serving"),
    (.status(""), "STATUS="),
    (.extendTimeout(.milliseconds(1500)), "EXTEND_TIMEOUT_USEC=1500000"),
    (.extendTimeout(.nanoseconds(1)), "EXTEND_TIMEOUT_USEC=1"),
    (
      .extendTimeout(.seconds(18_446_744_073_709) + .microseconds(551_614)),
      "EXTEND_TIMEOUT_USEC=18446744073709551614"
    ),
    (.extendTimeout(nearlyASecond), "EXTEND_TIMEOUT_USEC=1000000"),
    (.watchdog, "WATCHDOG=1"),
    (.exitStatus(0), "EXIT_STATUS=0"),
    (.exitStatus(255), "EXIT_STATUS=255"),
    (.custom(name: "WATCHDOG", value: "trigger"), "WATCHDOG=trigger"),
    (.custom(name: "X_EXAMPLE_LEVEL", value: "a=b"), "X_EXAMPLE_LEVEL=a=b"),
  ]

  @Test func everyFieldIsItsLine() throws {
    for (field, line) in NotifyFieldTests.lines { #expect(try text([field]) == line) }
  }

  @Test func aDescriptorsMessageHasItsName() throws {
    let messages = try [
      NotifyMessage.storing("a b", polled: true), .storing("x", polled: false), .removing("c1"),
    ]
    #expect(
      messages.map { String(decoding: $0.bytes, as: UTF8.self) } == [
        "FDSTORE=1\nFDNAME=a b", "FDSTORE=1\nFDNAME=x\nFDPOLL=0", "FDSTOREREMOVE=1\nFDNAME=c1",
      ])
    for name in ["", "a:b", "a\nREADY=1", "ä", String(repeating: "x", count: 256)] {
      #expect(throws: SystemdError.self) { try NotifyMessage.storing(name, polled: true) }
      #expect(throws: SystemdError.self) { try NotifyMessage.removing(name) }
    }
  }

  @Test func severalFieldsAreOneMessage() throws {
    #expect(try text([.status("Up"), .ready, .watchdog]) == "READY=1\nWATCHDOG=1\nSTATUS=Up")
  }

  @Test func theReloadStampIsMonotonicMicroseconds() throws {
    let before = MonotonicTime.now().microseconds
    let line = try #require(text([.reloading()]).split(separator: "=").last)
    let time = try #require(UInt64(line))
    #expect(time >= before && time <= MonotonicTime.now().microseconds)
  }

  private static let refused: [[NotifyField]] = [
    [],
    [.status("a"), .status("b")],
    [.watchdog, .custom(name: "WATCHDOG", value: "trigger")],
    [.stopping, .ready],
    [.stopping, .reloading(at: .microseconds(1))],
    [.exitStatus(-1)],
    [.exitStatus(256)],
    [.extendTimeout(.zero)],
    [.extendTimeout(.seconds(-1))],
    [.extendTimeout(.seconds(Int64.max))], [.extendTimeout(.seconds(Int64.max) + .seconds(1))],
    // 2^64 - 1 microseconds, which systemd takes for infinity.
    [.extendTimeout(.seconds(18_446_744_073_709) + .microseconds(551_615))],
    [.custom(name: "X_A", value: String(repeating: "x", count: 4096))],
  ]

  /// Each with its name and its value.
  private static let refusedCustom: [(String, String)] = [
    ("X_A", "1\nREADY=1"), ("X_A", "1\0"), ("X_A", "1\u{7f}"), ("x_a", "1"), ("X_A=1\nB", "1"),
    ("", "1"), ("READY", "1"), ("BARRIER", "1"), ("FDSTORE", "1"), ("MAINPIDFD", "1"),
  ]

  @Test func whatTheManagerWouldMisreadIsAnErrorInASentence() {
    let custom = Self.refusedCustom.map { [NotifyField.custom(name: $0, value: $1)] }
    for fields in Self.refused + custom {
      do {
        Issue.record("\(fields) became \(try NotifyMessage(fields).bytes)")
      } catch {
        #expect(error.description.hasSuffix("."))
      }
    }
  }

  // MARK: Status

  @Test func aStatusIsOneLineThatSystemdTakes() throws {
    #expect(
      try text([.status("a\nREADY=1\r\nb\tc\0d\u{2028}e\u{85}f\u{7f}\u{202e}")])
        == #"STATUS=a\\nREADY=1\\r\\nb\\tc\\u{0}d\\u{2028}e\\u{85}f\\u{7f}\\u{202e}"#)
  }

  /// It takes a backslash for an escape, and drops a message that ends with one.
  @Test func aBackslashIsEscaped() throws {
    let fields: [NotifyField] = [.custom(name: "X_A", value: #"\"#), .status(#"C:\state\"#)]
    #expect(try text(fields) == "X_A=\\\\\n" + #"STATUS=C:\\state\\"#)
    for padding in 4085...4095 {
      let cut = try text([.status(String(repeating: "a", count: padding - 7) + #"\\\"#)])
      #expect(cut.utf8.count <= 4096 && cut.utf8.count { $0 == UInt8(ascii: "\\") } % 2 == 0)
    }
  }

  @Test(arguments: ["🙂", "\u{301}", "\u{1b}"]) func aLongStatusIsCutAndTheMessageFits(
    _ character: String
  ) throws {
    let status = "a" + String(repeating: character, count: 10_000)
    let message = try text([.ready, .status(status)])
    #expect(message.utf8.count > 4096 - 4 && message.utf8.count <= 4096)
    let shown = "READY=1\nSTATUS=\(VisibleText.line(status))".replacing("\\", with: "\\\\")
    #expect(shown.utf8.starts(with: message.utf8) && !message.contains("\u{fffd}"))
  }

  @Test func aStatusLeavesRoomForTheOtherFields() throws {
    let value = String(repeating: "x", count: 4000)
    let message = try text([
      .status(String(repeating: "s", count: 500)), .custom(name: "X_A", value: value),
    ])
    #expect(message.utf8.count == 4096)
    #expect(message.hasPrefix("X_A=\(value)\nSTATUS=s"))
    // room for "STATUS=" alone, which would clear it
    let full = String(repeating: "x", count: 4084)
    let noRoom = SystemdError.invalidArgument(
      "The other fields leave no room for STATUS=. Send it in a message of its own.")
    for value in [full, full + "x"] {
      #expect(throws: noRoom) { try text([.status("s"), .custom(name: "X_A", value: value)]) }
    }
    #expect(try text([.status(""), .custom(name: "X_A", value: full)]).utf8.count == 4096)
  }
}
