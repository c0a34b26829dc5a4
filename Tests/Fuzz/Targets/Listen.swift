// SPDX-License-Identifier: Apache-2.0
import CFuzz
import CLinux

@testable import DaemonSystemd

extension FuzzTarget {
  /// A line each for `LISTEN_PID`, `LISTEN_PIDFDID` and `LISTEN_FDS`, where `-` is a variable that is not set, and 100 of
  /// the first two this process; the rest is `LISTEN_FDNAMES`.
  static let listen = FuzzTarget(name: "listen") { input in
    var variables: [String: String] = [:]
    for name in ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS"] {
      let value = input.lineText()
      if value != "-" { variables[name] = value == "100" ? own[name] ?? value : value }
    }
    let list = input.allText()
    if list != "-" { variables["LISTEN_FDNAMES"] = list }
    // A number of names that fills memory is refused by the limit: it is lowered, so that this is tried.
    lowerLimit
    checkNames(ServiceEnvironment(variables), variables)
  }

  private static let own = [
    "LISTEN_PID": "\(getpid())", "LISTEN_PIDFDID": "\(clinux_process_number(getpid()))",
  ]

  private static let lowerLimit: Void = fuzz_limit_descriptors(1000)

  private static func checkNames(_ environment: ServiceEnvironment, _ variables: [String: String]) {
    func digits(_ name: String) -> String? { variables[name].flatMap { normalDigits($0.utf8) } }
    let isOurs = own.allSatisfy { name, value in
      // Of an older kernel no process has a number.
      name == "LISTEN_PIDFDID" && (variables[name] == nil || value == "0") || digits(name) == value
    }
    do throws(SystemdError) {
      let names = try environment.passedDescriptorNames
      require(names.isEmpty || isOurs, "\(names) are another process's")
      require(
        String(names.count) == (isOurs ? digits("LISTEN_FDS") ?? "0" : "0"),
        "\(names) of \(variables)")
      require(
        names.allSatisfy { $0.utf8.count <= 255 && $0.utf8.allSatisfy { $0 >= 32 && $0 < 127 } },
        "\(names) are no names")
      guard !names.isEmpty, let list = variables["LISTEN_FDNAMES"] else { return }
      require(names.joined(separator: ":") == list, "\(names) of \(list)")
      for name in names where !name.isEmpty {
        require((try? DescriptorName.checked(name)) == name, "\"\(name)\" can't be sent")
      }
    } catch {
      requireSentence(error)
      require(environment.problems.contains(error), "\(error) is not among the problems")
    }
    do throws(SystemdError) {
      let name = variables["LISTEN_FDNAMES"] ?? ""
      require(try DescriptorName.checked(name) == name, "\"\(name)\" was changed")
    } catch { requireSentence(error) }
  }
}
