// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonSystemd

@Suite struct NotifyFieldTests {
  private func text(_ fields: [NotifyField], descriptors: Int = 0) throws -> String {
    String(decoding: try NotifyMessage(fields, descriptorCount: descriptors).bytes, as: UTF8.self)
  }

  /// One attosecond over 999,999 microseconds.
  private static let nearlyASecond = Duration(
    secondsComponent: 0, attosecondsComponent: 999_999_000_000_000_001)

  /// As long as one of D-Bus may be: 255 bytes.
  private static let longName = "a." + String(repeating: "x", count: 253)

  private static let lines: [(NotifyField, String)] = [
    (.ready, "READY=1"),
    (.stopping, "STOPPING=1"),
    (.reloading(at: 42), "RELOADING=1\nMONOTONIC_USEC=42"),
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
    (.watchdogTrigger, "WATCHDOG=trigger"),
    (.watchdogPeriod(.seconds(3)), "WATCHDOG_USEC=3000000"),
    (.watchdogPeriod(.zero), "WATCHDOG_USEC=0"),
    (.errno(0), "ERRNO=0"),
    (.errno(4095), "ERRNO=4095"),
    (
      .busError("org.freedesktop.DBus.Error.TimedOut"),
      "BUSERROR=org.freedesktop.DBus.Error.TimedOut"
    ),
    (
      .varlinkError("org.varlink.service.InvalidParameter"),
      "VARLINKERROR=org.varlink.service.InvalidParameter"
    ),
    (.busError(longName), "BUSERROR=\(longName)"),
    (.exitStatus(0), "EXIT_STATUS=0"),
    (.exitStatus(255), "EXIT_STATUS=255"),
    (.notifyAccess(.all), "NOTIFYACCESS=all"),
    (.restartReset, "RESTART_RESET=1"),
    (.mainPID(2), "MAINPID=2"),
    (.removeDescriptors(name: "c1"), "FDSTOREREMOVE=1\nFDNAME=c1"),
    (.custom(name: "X_EXAMPLE_LEVEL", value: "a=b"), "X_EXAMPLE_LEVEL=a=b"),
  ]

  @Test func everyFieldIsItsLine() throws {
    for (field, line) in NotifyFieldTests.lines { #expect(try text([field]) == line) }
    #expect(try text([.mainPID(7), .mainPIDFDID(99)]) == "MAINPID=7\nMAINPIDFDID=99")
    #expect(try text([.mainPIDFD], descriptors: 1) == "MAINPIDFD=1")
    #expect(
      try text([.storeDescriptors(name: "a b", polled: true)], descriptors: 2)
        == "FDSTORE=1\nFDNAME=a b")
    #expect(
      try text([.storeDescriptors(name: "x", polled: false)], descriptors: 1)
        == "FDSTORE=1\nFDNAME=x\nFDPOLL=0")
  }

  @Test func severalFieldsAreOneMessage() throws {
    #expect(try text([.status("Up"), .ready, .watchdog]) == "READY=1\nWATCHDOG=1\nSTATUS=Up")
  }

  @Test func theReloadStampIsMonotonicMicroseconds() {
    let before = MonotonicTime.now().microseconds
    guard case .reloading(let time) = NotifyField.reloadingNow else {
      Issue.record("not a reload")
      return
    }
    #expect(time >= before && time <= MonotonicTime.now().microseconds)
  }

  private static let refused: [([NotifyField], Int)] = [
    ([], 0),
    ([.status("a"), .status("b")], 0),
    ([.watchdog, .watchdogTrigger], 0),
    ([.stopping, .ready], 0),
    ([.stopping, .reloading(at: 1)], 0),
    ([.mainPIDFDID(5)], 0),
    ([.mainPIDFD], 0),
    ([.mainPIDFD], 2),
    ([.mainPIDFD, .mainPID(7)], 1),
    ([.mainPID(1)], 0),
    ([.mainPID(-4)], 0),
    ([.ready], 1),
    ([.storeDescriptors(name: "x", polled: true)], 0),
    ([.storeDescriptors(name: "x", polled: true)], 254),
    ([.storeDescriptors(name: "x", polled: true), .removeDescriptors(name: "y")], 1),
    ([.storeDescriptors(name: "", polled: true)], 1),
    ([.storeDescriptors(name: "a:b", polled: true)], 1),
    ([.storeDescriptors(name: "a\nREADY=1", polled: true)], 1),
    ([.storeDescriptors(name: "ä", polled: true)], 1),
    ([.removeDescriptors(name: String(repeating: "x", count: 256))], 0),
    ([.errno(-1)], 0),
    ([.errno(4096)], 0),
    ([.exitStatus(-1)], 0),
    ([.exitStatus(256)], 0),
    ([.extendTimeout(.zero)], 0),
    ([.extendTimeout(.seconds(-1))], 0),
    ([.extendTimeout(.seconds(Int64.max))], 0),
    // 2^64 - 1 microseconds, which systemd takes for infinity.
    ([.extendTimeout(.seconds(18_446_744_073_709) + .microseconds(551_615))], 0),
    ([.busError("no dots")], 0),
    ([.busError("nodots")], 0),
    ([.busError("org..example")], 0),
    ([.busError(longName + "x")], 0),
    ([.busError("org.example\nREADY=1")], 0),
    ([.varlinkError("")], 0),
    ([.custom(name: "X_A", value: "1\nREADY=1")], 0),
    ([.custom(name: "X_A", value: "1\0")], 0),
    ([.custom(name: "X_A", value: "1\u{7f}")], 0),
    ([.custom(name: "READY", value: "1")], 0),
    ([.custom(name: "BARRIER", value: "1")], 0),
    ([.custom(name: "x_a", value: "1")], 0),
    ([.custom(name: "X_A=1\nB", value: "1")], 0),
    ([.custom(name: "", value: "1")], 0),
    ([.custom(name: "X_A", value: String(repeating: "x", count: 4096))], 0),
  ]

  @Test func whatTheManagerWouldMisreadIsAnErrorInASentence() {
    for (fields, count) in NotifyFieldTests.refused {
      do {
        let message = try NotifyMessage(fields, descriptorCount: count)
        Issue.record("\(fields) with \(count) became \(message.bytes)")
      } catch {
        #expect(error.description.hasSuffix("."))
      }
    }
  }

  // MARK: Status

  @Test func aStatusIsOneLineThatSystemdTakes() throws {
    #expect(
      try text([.status("a\nREADY=1\r\nb\tc\0d\u{2028}e\u{85}f\u{7f}\u{202e}")])
        == #"STATUS=a\nREADY=1\r\nb\tc\u{0}d\u{2028}e\u{85}f\u{7f}\u{202e}"#)
    let refused = [0xfdd0, 0xfffe, 0x1ffff].compactMap { Unicode.Scalar($0 as UInt32) }
    let status = String(String.UnicodeScalarView(refused))
    #expect(try text([.status(status)]) == #"STATUS=\u{fdd0}\u{fffe}\u{1ffff}"#)
    #expect(try text([.status("naïve 👩‍👩‍👧 …")]) == "STATUS=naïve 👩‍👩‍👧 …")
  }

  @Test func aLongStatusIsCutAtACharacterAndTheMessageFits() throws {
    let family = "👩‍👩‍👧"  // 18 bytes
    let message = try text([.ready, .status(String(repeating: family, count: 1000))])
    #expect(message.utf8.count <= 4096)
    #expect(message.utf8.count > 4096 - 18)
    #expect(message.dropFirst(15).allSatisfy { String($0) == family })
    #expect(message.hasPrefix("READY=1\nSTATUS="))
    // One character longer than any message: cut between its parts.
    let monster = "a" + String(repeating: "\u{301}", count: 10_000)
    let cut = try text([.status(monster)])
    #expect(cut.utf8.count > 4093 && cut.utf8.count <= 4096)
    #expect(!cut.unicodeScalars.contains("\u{fffd}"))
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
