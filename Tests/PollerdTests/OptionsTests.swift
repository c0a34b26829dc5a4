// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonSystemd
import XCTest

@testable import pollerd

final class OptionsTests: XCTestCase {
  func testNothingGivenIsNothingSet() throws {
    XCTAssertEqual(try Options(parsing: []), Options())
  }

  func testAllOptions() throws {
    var expected = Options()
    expected.settings = PartialSettings(
      interval: .milliseconds(250), source: PollSource(path: "/x"))
    expected.configFile = "c"
    expected.givenStateDirectory = "d"
    expected.readyFile = "/r"
    expected.readyDescriptor = 3
    expected.aliveFile = "/a"
    expected.stopDelay = .milliseconds(1500)
    let spaced = [
      "--interval", "0.25", "--source", "/x", "--config", "c", "--state", "d", "--ready-file", "/r",
      "--ready-fd", "3", "--alive-file", "/a",
      "--drain", "1.5",
    ]
    XCTAssertEqual(try Options(parsing: spaced), expected)
    let attached = [
      "--interval=0.25", "--source=/x", "--config=c", "--state=d", "--ready-file=/r",
      "--ready-fd=3", "--alive-file=/a", "--drain=1.5",
    ]
    XCTAssertEqual(try Options(parsing: attached), expected)
  }

  func testTheLastOfSeveralWins() throws {
    let options = try Options(parsing: ["--interval", "1", "--interval", "2"])
    XCTAssertEqual(options.settings.interval, .seconds(2))
  }

  func testHelp() throws {
    XCTAssertTrue(try Options(parsing: ["--help"]).wantsHelp)
    XCTAssertTrue(try Options(parsing: ["-h", "whatever"]).wantsHelp)
    for option in [
      "--interval", "--source", "--config", "--state", "--ready-file", "--ready-fd",
      "--alive-file", "--drain", "--help",
    ] {
      XCTAssertTrue(Options.usage.contains("  \(option) "), option)
    }
  }

  func testEachBadArgumentHasItsSentence() {
    let number =
      "is not a number of seconds from 0.001 (to a year); write 0.5, for instance"
    let cases: [([String], String)] = [
      (["--verbose"], "There is no option --verbose"),
      (["-x"], "There is no option -x"),
      (["file"], "\"file\" belongs to no option"),
      ([""], "\"\" belongs to no option"),
      (["--help=yes"], "--help takes no value"),
      (["--check-config=c"], "--check-config takes no value"),
      (["--interval"], "--interval needs a value"),
      (["--interval", "--source", "/x"], "--interval needs a value"),
      (["--state="], "--state needs a value"),
      (["--config", ""], "--config needs a value"),
      (["--drain", "-1"], "--drain \"-1\" is not a number of seconds from 0 to 3600"),
      (["--drain", "nan"], "--drain \"nan\" is not a number of seconds from 0 to 3600"),
      (["--ready-file"], "--ready-file needs a value"),
      (["--ready-fd", "x"], "--ready-fd \"x\" is not the number of a descriptor above 2"),
      (["--ready-fd=1"], "--ready-fd \"1\" is not the number of a descriptor above 2"),
      (["--interval", "soon"], "interval \"soon\" \(number)"),
      (["--interval", "0"], "interval \"0\" \(number)"),
      (["--interval", "-1"], "interval \"-1\" \(number)"),
      (["--interval", "nan"], "interval \"nan\" \(number)"),
      (["--interval", "inf"], "interval \"inf\" \(number)"),
      (["--interval", "1e300"], "interval \"1e300\" \(number)"),
      (
        ["--source", "http://host/x"],
        "source \"http://host/x\" is no file's path; write /proc/loadavg, for instance"
      ),
    ]
    for (arguments, sentence) in cases {
      XCTAssertThrowsError(try Options(parsing: arguments), "\(arguments)") {
        XCTAssertEqual("\($0)", sentence + " (see pollerd --help).")
      }
    }
  }

  func testWhatTheLifecycleIsTold() throws {
    let options = try Options(parsing: [
      "--ready-file", "/run/r", "--ready-fd", "3", "--alive-file", "/run/a", "--drain", "2",
    ])
    let none = try options.lifecycle(ServiceEnvironment([:]))
    for interface: LifecycleInterface in [
      .signals(), .readinessFile("/run/r"), .readinessDescriptor(3), .livenessFile("/run/a"),
    ] {
      XCTAssertTrue(none.interfaces.contains(interface))
    }
    XCTAssertEqual(none.stopDelay, .seconds(2))
    XCTAssertNil(none.stopTimeout)
    let name = "TERMINATION_GRACE_PERIOD_SECONDS"
    let container = try options.lifecycle(ServiceEnvironment([name: "30"]))
    XCTAssertEqual(container.stopTimeout, .seconds(28))
    XCTAssertThrowsError(try options.lifecycle(ServiceEnvironment([name: "-1"])))
  }

  func testWhereTheStateIsKept() throws {
    let home = ["HOME": "/root"]
    func directory(_ options: Options, _ environment: [String: String]) throws -> String {
      try options.stateDirectory(home.merging(environment) { $1 })
    }
    let none = Options()
    XCTAssertEqual(try directory(none, [:]), "/root/.local/state/pollerd")
    XCTAssertEqual(try directory(none, ["XDG_STATE_HOME": "/xdg"]), "/xdg/pollerd")
    XCTAssertEqual(
      try directory(none, ["XDG_STATE_HOME": "relative"]), "/root/.local/state/pollerd")
    let both = ["STATE_DIRECTORY": "/a:/b", "XDG_STATE_HOME": "/xdg"]
    XCTAssertEqual(try directory(none, both), "/a")
    XCTAssertEqual(try directory(none, ["STATE_DIRECTORY": ""]), "/root/.local/state/pollerd")
    XCTAssertEqual(try directory(Options(parsing: ["--state", "d"]), both), "d")
    XCTAssertThrowsError(try none.stateDirectory([:])) {
      XCTAssertEqual(
        "\($0)",
        "There is no $HOME to keep the state in: say where with --state (see pollerd --help).")
    }
  }
}
