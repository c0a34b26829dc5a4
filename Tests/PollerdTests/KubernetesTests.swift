// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Foundation
import XCTest

@testable import DaemonLifecycle
@testable import pollerd

/// `Examples/Kubernetes`, as far as it can be checked without a cluster: its numbers and paths agree with each other,
/// with the daemon's own arithmetic, and with what its README says.
final class KubernetesTests: XCTestCase {
  private static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Examples/Kubernetes")

  private func lines(of file: String) throws -> [String] {
    let text = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
    return text.components(separatedBy: "\n")
  }

  /// Without comments; the manifest has no # in a value.
  private func manifest() throws -> [String] {
    try lines(of: "pollerd.yaml").map { String($0.prefix { $0 != "#" }) }
      .filter { !$0.allSatisfy(\.isWhitespace) }
  }

  /// The values of `key: value` lines.
  private func values(of key: String, in lines: [String]) -> [String] {
    lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { $0.hasPrefix("\(key): ") }
      .map { $0.dropFirst(key.count + 2).trimmingCharacters(in: CharacterSet(charactersIn: "\" ")) }
  }

  private func number(_ key: String, after section: String? = nil) throws -> Int {
    var lines = try manifest()
    if let section {
      lines = Array(lines.drop { $0.trimmingCharacters(in: .whitespaces) != section + ":" })
    }
    let value = try XCTUnwrap(values(of: key, in: lines).first, key)
    return try XCTUnwrap(Int(value), "\(key): \(value)")
  }

  private func options() throws -> Options {
    let arguments = try manifest().map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { $0.hasPrefix("- --") }.map { String($0.dropFirst(2)) }
    XCTAssertEqual(arguments.count, 4)
    return try Options(parsing: arguments)
  }

  private func configuration() throws -> LifecycleConfiguration {
    let lines = try manifest()
    let name = "TERMINATION_GRACE_PERIOD_SECONDS"
    let index = try XCTUnwrap(
      lines.firstIndex { $0.trimmingCharacters(in: .whitespaces) == "- name: \(name)" })
    let value = try XCTUnwrap(values(of: "value", in: [lines[index + 1]]).first)
    XCTAssertEqual(Int(value), try number("terminationGracePeriodSeconds"))
    return try options().lifecycle(ServiceEnvironment([name: value]))
  }

  // MARK: The manifest

  func testItIsWellFormed() throws {
    for line in try lines(of: "pollerd.yaml") {
      XCTAssertFalse(line.contains("\t"), line)
      XCTAssertEqual(line.prefix { $0 == " " }.count % 2, 0, line)
      XCTAssertEqual(
        line.filter { "[{".contains($0) }.count, line.filter { "]}".contains($0) }.count, line)
    }
    XCTAssertEqual(
      values(of: "kind", in: try manifest()), ["StatefulSet", "Service", "PodDisruptionBudget"])
    XCTAssertEqual(Set(values(of: "name", in: try manifest())), ["pollerd"])
  }

  func testAllProbesAskForTheFileOfTheArguments() throws {
    let ready = try XCTUnwrap(options().readyFile)
    let probes = try manifest().filter { $0.contains("--probe, ready") }
    XCTAssertEqual(probes.count, 2)
    for probe in probes {
      XCTAssertEqual(
        probe.trimmingCharacters(in: .whitespaces),
        "exec: {command: [/pollerd, --ready-file=\(ready), --probe, ready]}")
    }
  }

  func testTheLivenessProbeIsPatient() throws {
    let path = try XCTUnwrap(options().aliveFile)
    let probe = try XCTUnwrap(manifest().first { $0.contains("--probe, alive") })
    XCTAssertTrue(probe.contains("[/pollerd, --alive-file=\(path), --probe, alive]"), probe)
    XCTAssertGreaterThan(try number("failureThreshold", after: "livenessProbe"), 1)
    XCTAssertTrue(path.hasPrefix("/run/pollerd/"))
  }

  func testWhatIsWrittenIsOnAVolume() throws {
    func mount(_ name: String) throws -> String {
      let line = try XCTUnwrap(manifest().first { $0.contains("{name: \(name), mountPath: ") })
      return String(try XCTUnwrap(line.components(separatedBy: "mountPath: ").last).dropLast())
    }
    let options = try options()
    XCTAssertTrue(try XCTUnwrap(options.readyFile).hasPrefix(try mount("run") + "/"))
    XCTAssertTrue(try XCTUnwrap(options.givenStateDirectory).hasPrefix(try mount("state") + "/"))
    let text = try manifest().joined(separator: "\n")
    XCTAssertTrue(text.contains("- name: run\n          emptyDir: {medium: Memory"))
    XCTAssertTrue(text.contains("- metadata: {name: state}"))
    XCTAssertTrue(text.contains("readOnlyRootFilesystem: true"))
  }

  /// The drain fits, and what it leaves is enough: it is longer than it takes to be found not ready, and all is over,
  /// with its save reserve, before SIGKILL.
  func testTheTimesFit() throws {
    let configuration = try configuration()
    XCTAssertNil(StopBudget.drainProblem(.init(configuration: configuration)))
    let grace = Duration.seconds(try number("terminationGracePeriodSeconds"))
    let needed =
      configuration.stopDelay + configuration.hookTimeout + configuration.cancellationGrace
      + configuration.saveReserve + (configuration.exitGrace ?? .zero)
    XCTAssertLessThan(needed, try XCTUnwrap(configuration.stopTimeout))
    XCTAssertLessThan(try XCTUnwrap(configuration.stopTimeout), grace)
    let found =
      try number("periodSeconds", after: "readinessProbe")
      * number("failureThreshold", after: "readinessProbe")
    XCTAssertGreaterThan(configuration.stopDelay, .seconds(found))
  }

  // MARK: The image and the guide

  func testTheImage() throws {
    let dockerfile = try lines(of: "Dockerfile")
    XCTAssertTrue(dockerfile.contains("ENTRYPOINT [\"/pollerd\"]"), "the exec form")
    XCTAssertTrue(dockerfile.contains("STOPSIGNAL SIGTERM"))
    let user = try number("runAsUser")
    XCTAssertNotEqual(user, 0)
    XCTAssertTrue(dockerfile.contains("USER \(user):\(try number("runAsGroup"))"))
  }

  func testTheGuidesTimetable() throws {
    let configuration = try configuration()
    let zero = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(.init(configuration: configuration), allowed: nil, from: zero)
    func seconds(_ time: MonotonicTime) -> Int64 { time.nanoseconds / 1_000_000_000 }
    let drained = seconds(budget.drainEnd(.init(configuration: configuration)))
    let hooks = seconds(budget.endBeforeSaves)
    let end = seconds(budget.end)
    let last = seconds(budget.end.advanced(by: budget.exitGrace))
    let rows = try lines(of: "README.md").filter { $0.hasPrefix("| ") }
    for beginning in [
      "| 0 to \(drained) | the drain", "| \(drained) to \(hooks) | DidEnterBackground",
      "| \(hooks) to \(end) | the save reserve", "| \(last) | the process is ended",
      "| \(try number("terminationGracePeriodSeconds")) | SIGKILL",
    ] {
      XCTAssertTrue(rows.contains { $0.hasPrefix(beginning) }, beginning)
    }
  }
}
