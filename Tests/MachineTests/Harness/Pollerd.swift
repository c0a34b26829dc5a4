// SPDX-License-Identifier: Apache-2.0
import TestSupport

extension MachineTest {
  /// The shipped pollerd as an instance of its template: `pollerd@tN.service`, with its own configuration and state.
  func pollerd(config: String = "", _ lines: String...) async throws -> Service {
    try await installPollerdFiles()
    try await write(pollerdConfig, config)
    return try await adopt(
      "pollerd@t\(number).service",
      dropIns: lines.isEmpty ? [] : ["[Service]\n" + lines.joined(separator: "\n") + "\n"])
  }

  var pollerdConfig: String { "/etc/pollerd/t\(number).conf" }

  /// Where `pollerd(config:)` keeps its count, in turns.
  var pollerdStates: [String] { ["0", "1"].map { "/var/lib/pollerd-t\(number)/state.\($0)" } }

  func installPollerdFiles() async throws {
    try await installExample("pollerd", units: "pollerd.service", "pollerd@.service")
  }

  /// All that `systemd/README.md` says to install of one, as it says; the same for every test, so it stays.
  func installExample(_ name: String, units: String...) async throws {
    for unit in units {
      try await put("/etc/systemd/system/" + unit, try Package.read("systemd/" + unit))
    }
    let user = "sysusers.d/\(name).conf"
    try await put("/etc/" + user, try Package.read("systemd/" + user))
    try await expect("systemd-sysusers")
    try await expect("ln", "-sfn", "/opt/machine/bin/" + name, "/usr/local/bin/" + name)
  }
}

/// What pollerd has printed: each number once, also over restarts; after a kill it goes on from a save, or later.
struct PollLedger {
  private(set) var last = 0
  private var saved = 0
  private var isNew = false
  private var backs = 0
  /// How often it was killed, or could not save.
  var mayGoBack = 0

  /// Reads on.
  mutating func read(_ service: Service) async throws {
    let script = #"""
      journalctl --sync; journalctl --quiet --cursor-file=/run/wear-cursor --output=cat "_SYSTEMD_UNIT=$1" \
        _TRANSPORT=stdout | awk '/^(poll|started|saved)/ { print $1, $2 == "count" ? $3 : $2 }'
      """#
    let lines = try await service.test.shell(script, service.name, within: .seconds(300)).text
      .split(separator: "\n")
    for line in lines {
      let words = line.split(separator: " ")
      guard words.count == 2 else { continue }
      switch words[0] {
      case "poll": try goOn(to: Int(words[1]) ?? 0, from: "\(line)")
      case "saved:":
        try goOn(to: (Int(words[1]) ?? 0) + 1, from: "\(line)")
        last -= 1
        saved = last
      default: isNew = true
      }
    }
  }

  private mutating func goOn(to number: Int, from line: String) throws {
    let goesBack = number != last + 1
    if goesBack { backs += 1 }
    guard !goesBack || (isNew && (saved...last).contains(number - 1)), backs <= mayGoBack else {
      throw TestFailure(
        "pollerd says \"\(line)\" after \(last), the last save being \(saved), and has gone back \(backs) times of \(mayGoBack)"
      )
    }
    (last, isNew) = (number, false)
  }
}
