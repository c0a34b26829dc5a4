// SPDX-License-Identifier: Apache-2.0
import TestSupport

/// A daemon of the wear, as a model has it.
struct Worn {
  enum Program: String, CaseIterable { case pollerd, echod, queued, standby }

  let program: Program
  let service: Service
  /// A file of settings: where it is, and what a reload takes and refuses.
  var settings: (path: String, good: String, bad: String)?
  var isPaused = false
  /// The process, once it is known; it may not be the former one, which has ended.
  var pid = 0
  var formerPID = 0
  /// What the status says of the last reload, if there was one.
  var reload: String?

  /// systemd keeps an operator's pause for these, until they are stopped.
  var keepsPause: Bool { program == .pollerd || program == .echod }

  /// Whether it may have ended by itself: that is seen as all is at rest.
  var isUnsure = false

  /// Its process was ended, and the next one has not been seen.
  mutating func hasEnded() {
    if pid != 0 { formerPID = pid }
    (pid, reload) = (0, nil)
    if !keepsPause { isPaused = false }
  }

  /// What differs from what was seen of it; `nil` when nothing does.
  ///
  /// - Parameter isRest: Whether what passes by itself, such as a lost connection, has to have passed.
  func difference(from seen: Sight, isRest: Bool) -> String? {
    let status = seen["StatusText"]
    let state = status.split(separator: " since").first.map(String.init) ?? ""
    let works =
      state == "foreground"
      || program == .standby && state.hasPrefix("background, waiting for the lease ledger")
    let notes = status.split(separator: "; ").dropFirst()
    let said = notes.first { $0.hasPrefix("reload") }
    // Work that has failed says so until it has run well for a while, which it does not in a pause.
    let passing = notes.filter { $0 != said && !(isPaused && $0.contains(" has failed ")) }
    let problem = passing.first { note in
      ["fail", "NOT", "not ", "late", "hang", "has ended", "abandon"].contains {
        note.contains($0)
      }
    }
    switch true {
    case seen["ActiveState"] != "active": return "it is \(seen["ActiveState"])"
    case isUnsure && seen.pid != 0 && works: break
    case seen.pid == 0 || seen.pid == formerPID || (pid != 0 && seen.pid != pid):
      return "its process is \(seen.pid), and not \(pid) after \(formerPID)"
    case isPaused && !state.hasPrefix("background, operator"), !isPaused && !works:
      return "it is to be \(isPaused ? "paused" : "at work")"
    case said?.hasPrefix(reload ?? "no reload") != true && (said != nil || reload != nil):
      return "it says \(said ?? "nothing") of a reload, and not \(reload ?? "nothing")"
    default: break
    }
    return isRest ? problem.map { "it has a problem: \($0)" } : nil
  }

  /// Takes over what was seen of it, which does not differ.
  mutating func settle(on seen: Sight) {
    if isUnsure { reload = seen["StatusText"].contains("; reloaded ") ? "reloaded " : nil }
    (pid, isUnsure) = (seen.pid, false)
  }
}

/// What systemd and the kernel say of a unit and its process, by field.
struct Sight: CustomStringConvertible {
  private(set) var fields: [String: String] = [:]
  subscript(name: String) -> String { fields[name] ?? "" }
  func number(_ name: String) -> Int { Int(self[name]) ?? 0 }
  var pid: Int { number("MainPID") }
  var description: String { "\(fields)" }

  /// Of each unit, in their order.
  static func of(_ units: [Worn], on machine: MachineTest) async throws -> [Sight] {
    let script = #"""
      for unit; do
        show=$(systemctl show -p MainPID,ActiveState,NFileDescriptorStore,StatusText "$unit")
        pid=$(echo "$show" | sed -n s/^MainPID=//p)
        echo "unit=$unit"; echo "$show"
        sed -nE 's/^(VmRSS|Threads):[^0-9]*([0-9]+).*/\1=\2/p' /proc/$pid/status
        echo "descriptors=$(ls /proc/$pid/fd | wc -l)"
      done 2>/dev/null
      """#
    let command = ["sh", "-c", script, "sh"] + units.map(\.service.name)
    let output = try await machine.machine.run(command, within: .seconds(60)).text
    var sights: [Sight] = []
    for line in output.split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts[0] == "unit" { sights.append(Sight()) }
      if parts.count == 2, !sights.isEmpty {
        sights[sights.count - 1].fields["\(parts[0])"] = "\(parts[1])"
      }
    }
    guard sights.count == units.count else {
      throw TestFailure("not all units are seen: \(output)")
    }
    return sights
  }
}

extension MachineTest {
  /// Signals from three senders at once, then, once all were taken in, a last one: two that are on their way at the same
  /// time have no order, and one is for as long as a thread that has taken it waits for a processor.
  func storm(_ pid: Int, _ count: Int, of names: [String], last: String, seed: Int) async throws {
    let script = #"""
      my ($pid, $count, $seed, $last, @names) = @ARGV;
      for my $sender (1 .. 3) {
        next if fork;
        srand($seed + $sender);
        for (1 .. $count / 3) { kill($names[rand @names], $pid) or exit 1 }
        exit 0;
      }
      my $failed = 0;
      while (wait > 0) { $failed ||= $? }
      sub pending { local (@ARGV, $/) = "/proc/$pid/status"; (<> // die) =~ /(?:Sig|Shd)Pnd:\s*0*[1-9a-f]/ }
      sub runs { grep { local (@ARGV, $/) = $_; -e && (<> // "") =~ /\) R / } glob("/proc/$pid/task/*/stat") }
      1 while pending() || runs();
      kill($last, $pid) or $failed = 1;
      1 while pending();
      exit !!$failed;
      """#
    let output = try await machine.run(
      ["perl", "-e", script, "\(pid)", "\(count)", "\(seed)", last] + names, within: .seconds(120))
    guard output.isSuccess else { throw TestFailure("not all signals were sent: \(output.text)") }
  }
}
