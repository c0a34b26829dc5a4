// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// An init that the tests run, by the name of its section in the guide, lowercased.
enum Init: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case s6, runit, openrc, finit, supervisord, tini

  var testDescription: String { rawValue }

  /// A shell command for what a system that has booted with it would have.
  var preparation: String {
    switch self {
    case .s6, .runit, .tini: ":"
    // Not the real one, which is to boot a machine: its services are started by hand.
    case .openrc: "mkdir /run/openrc; touch /run/openrc/softlevel"
    // Without the services of a machine.
    case .finit: "find /etc/finit.d -name '*.conf' ! -name pollerd.conf -delete"
    case .supervisord: "mkdir -p /var/log/supervisor"
    }
  }

  /// The shell command that process 1 becomes.
  func command(_ section: Guide.Section) throws -> String {
    switch self {
    case .s6: "s6-svscan /service >>/var/log/pollerd.log 2>&1"
    case .runit: "runsvdir -P /etc/service >>/var/log/pollerd.log 2>&1"
    case .openrc: "tini -s -- sleep infinity"
    case .finit: "finit"
    case .supervisord: "supervisord -n -u root"
    case .tini: try Self.entryPoint(section.files["Dockerfile"] ?? "")
    }
  }

  /// What a container's manager makes of an image's last lines.
  private static func entryPoint(_ dockerfile: String) throws -> String {
    var (user, variables, arguments) = ("root", "", [String]())
    for line in dockerfile.replacing("\\\n", with: " ").split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      switch words[0] {
      case "USER": user = words[1]
      case "ENV": variables = words[1]
      case "ENTRYPOINT":
        arguments = try JSONDecoder().decode([String].self, from: Data(words[1].utf8))
      default: throw GuideError("Dockerfile: the tests do not know \(words[0])")
      }
    }
    let identity = "--reuid=\(user) --regid=\(user) --init-groups"
    let command = arguments.map { "'\($0)'" }.joined(separator: " ")
    return "env \(variables) setpriv \(identity) \(command) >>/var/log/pollerd.log 2>&1"
  }

  // MARK: Which are wanted

  static let selection = Selection<Init>("INITS", means: "containers")
  static var selected: [Init] { selection.selected }

  /// Those of them that read a newline from a descriptor.
  static var readingDescriptors: [Init] { selected.filter { [.s6, .openrc, .finit].contains($0) } }

  /// Those of them that can also be told as systemd is.
  static var readingSockets: [Init] { selected.filter { [.openrc, .finit].contains($0) } }
}

extension Trait where Self == ConditionTrait {
  /// Skips the tests, and says why, unless inits are wanted.
  static var inits: Self {
    .enabled(
      if: !Init.selected.isEmpty,
      """
      These tests run real inits in containers. They need root and mmdebstrap, and are run by \
      `INITS=all swift test --filter InitTests` (or a comma-separated list, such as s6,finit).
      """)
  }
}

/// Not skipped: a typing error in CI must not look like success.
@Test func theWantedInitsExist() {
  #expect(Init.selection.refusal == nil)
}
