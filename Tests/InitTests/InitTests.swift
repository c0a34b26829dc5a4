// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// The definitions and commands of the guide to other inits, on the real ones.
@Suite("Other inits", .inits, .offThePool, .timeLimit(.minutes(10))) struct InitTests {
  @Test(arguments: Init.selected)
  func pollerdLivesAsTheGuideSays(_ kind: Init) throws {
    let container = try Container(kind)
    if container.knows("start") { try container.tell("start") }
    if container.knows("ready") { try container.waitUntil("it is ready", container.isReady) }
    try container.waitForMorePolls()

    try container.write("interval = 0.02", to: "/etc/pollerd/pollerd.conf")
    try container.tell("reload")
    try container.waitFor("settings: interval 0.02 seconds, ")
    try container.tell("pause")
    try container.waitFor("lifecycle: Entered the background in ")
    // A reload too, so that it has been paused for some intervals when its lines are looked at.
    try container.tell("reload")
    try container.waitFor("settings: ", count: 2)
    let paused = container.lines().drop { !$0.hasPrefix("lifecycle: Entered the background in ") }
    #expect(paused.first?.contains("(SIGUSR1 from pid") == true, "\(paused)")
    #expect(!paused.contains { $0.hasPrefix("poll ") }, "\(paused)")
    try container.tell("resume")
    try container.waitFor("lifecycle: Entered the foreground in ")
    try container.waitForMorePolls()
    if container.knows("restart") {
      try container.tell("restart")
      try container.waitFor("started, pid ", count: 2)
      try container.waitForMorePolls()
    }
    // tini ends with its only child.
    if kind == .tini { try container.end() } else { try container.tell("stop") }
    try container.waitFor(
      "lifecycle: terminate (SIGTERM from pid", count: container.knows("restart") ? 2 : 1)

    let lines = container.lines()
    #expect(!lines.contains { $0.contains("Reload rejected") || $0.contains("failed") })
    // No number is lost or printed twice, though the process was another.
    let polls = container.polls()
    #expect(polls == Array(1...polls.count))
  }

  @Test(arguments: Init.readingDescriptors)
  func aStartThatFailsIsNotReady(_ kind: Init) throws {
    let container = try Container(kind, config: "interval = soon")
    if container.knows("start") {
      #expect(throws: TestFailure.self) { try container.tell("start") }
    }
    try container.waitFor("pollerd: /etc/pollerd/pollerd.conf, line 1: ")
    guard container.knows("ready") else { return }

    #expect(try !container.isReady())
    try container.write("interval = 0.05", to: "/etc/pollerd/pollerd.conf")
    try container.waitUntil("it is ready", container.isReady)
    try container.waitForMorePolls()
  }

  /// They set a NOTIFY_SOCKET, as systemd does, and there is nothing else of it.
  @Test(arguments: Init.readingSockets)
  func readinessCanAlsoBeSentToASocket(_ kind: Init) throws {
    let edits = [
      ("notify:s6", "notify:systemd"), (" --ready-fd %n", ""), (" --ready-fd 3", ""),
      ("notify=fd:3", "notify=socket:ready"),
      // OpenRC's socket is root's, and so is then the state.
      ("command_user=pollerd", "chown root: /var/lib/pollerd"),
    ]
    let container = try Container(kind) { definition in
      edits.reduce(definition) { $0.replacing($1.0, with: $1.1) }
    }
    if container.knows("start") { try container.tell("start") }
    if container.knows("ready") { try container.waitUntil("it is ready", container.isReady) }
    try container.waitForMorePolls()
    try container.tell("stop")
    try container.waitFor("lifecycle: terminate (SIGTERM from pid")
    let ours = container.lines().filter { $0.hasPrefix("lifecycle: ") && !$0.contains(" of ") }
    #expect(ours.count == 1 && ours.first?.contains("There is no bus: ") == true, "\(ours)")
  }
}
