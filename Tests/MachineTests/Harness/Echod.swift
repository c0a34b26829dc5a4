// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// The shipped echod, and clients for it.
struct EchodService {
  let service: Service
  let socket: Service
  let port: Int

  /// What `ProbeService load` has counted.
  struct Counts {
    let line: String
    private let values: [String: Int]

    init(_ output: String) throws {
      let lines = output.split(separator: "\n").filter { $0.hasPrefix("load: lines=") }
      line = String(try #require(lines.last, "\(output)"))
      values = Dictionary(
        uniqueKeysWithValues: line.split(separator: " ").dropFirst().map { word in
          let parts = word.split(separator: "=")
          return (String(parts[0]), Int(parts[1]) ?? -1)
        })
    }

    subscript(name: String) -> Int { values[name] ?? -1 }
  }
}

extension MachineTest {
  /// Runs clients of a server, with options as `LoadProbe` describes them, to their end.
  func load(
    _ echod: EchodService, _ options: [String], within limit: Duration = .seconds(150)
  ) async throws -> EchodService.Counts {
    let output = try await machine.run(
      ["/opt/machine/bin/ProbeService", "load", "\(echod.port)"] + options, within: limit)
    // What it has to say about the first thing that went wrong.
    if !output.isSuccess { print(output.text) }
    return try EchodService.Counts(output.text)
  }

  /// All that `systemd/README.md` says to install, with a port and a name of the test's own.
  func echod(config: String = "", _ lines: String...) async throws -> EchodService {
    let name = unique("echod")
    let port = 7000 + number
    try await installEchodFiles(as: name, port: port, config: config)
    let extra = lines.isEmpty ? [] : ["[Service]\n" + lines.joined(separator: "\n") + "\n"]
    let socket = try await adopt(name + ".socket")
    let service = try await adopt(name + ".service", dropIns: extra)
    try await socket.start()
    return EchodService(service: service, socket: socket, port: port)
  }

  func installEchodFiles(
    as name: String = "echod", port: Int = 7777, config: String = ""
  ) async throws {
    func text(_ file: String) throws -> String {
      try Package.read("systemd/" + file)
        .replacingOccurrences(of: "echod.socket", with: name + ".socket")
        .replacingOccurrences(of: "/etc/echod/echod.conf", with: "/etc/echod/\(name).conf")
        .replacingOccurrences(of: "7777", with: "\(port)")
    }
    let folder = "/etc/systemd/system"
    let files = [
      ("/etc/sysusers.d/echod.conf", try text("sysusers.d/echod.conf")),
      ("/etc/echod/\(name).conf", config),
      ("\(folder)/\(name).socket", try text("echod.socket")),
      ("\(folder)/\(name).service", try text("echod.service")),
    ]
    for (path, contents) in files { try await put(path, contents) }
    try await expect("systemd-sysusers")
    try await expect("ln", "-sfn", "/opt/machine/bin/echod", "/usr/local/bin/echod")
  }
}
