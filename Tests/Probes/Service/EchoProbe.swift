// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import FoundationEssentials
import Glibc

/// Answers each line with its process id and the line; one thread, no lifecycle: the module `DaemonSystemd` alone.
///
/// The listener comes from a socket unit, as "listener". A connection is stored when it is accepted, as "c"
/// and a number, so that the next run goes on with it; "forget" closes it, and "unknown" is what a test has
/// put into the store that this program does not know.
final class EchoProbe {
  private var clients: [Int32: String] = [:]
  private var lastClient = 0
  private let preservation: Preservation
  private let notify = try? NotifySocket(.current)

  init() throws {
    let passed = try PassedDescriptors.take(from: .current)
    for description in passed.descriptions {
      say("passed \(description.name): \(description.use?.description ?? "other")")
    }
    preservation = try Preservation(.current) { passed }
  }

  func run() throws -> Never {
    signal(SIGPIPE, SIG_IGN)
    guard let listener = try preservation.preserved(named: "listener", as: .listeningStream) else {
      say("no listener")
      exit(64)
    }
    for name in preservation.names(prefix: "c") {
      while let client = try preservation.preserved(named: name, as: .stream) {
        clients[client.release()] = name
      }
      lastClient = max(lastClient, Int(name.dropFirst()) ?? 0)
    }
    for name in try preservation.closeUnknown() { say("closed unknown \(name)") }
    try notify?.send([.ready, .status("\(clients.count) connections")])
    while true { try serve(listener.rawValue) }
  }

  private func serve(_ listener: Int32) throws {
    var ready = ([listener] + clients.keys.sorted()).map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    guard poll(&ready, nfds_t(ready.count), -1) > 0 else { return }
    for entry in ready where entry.revents != 0 {
      if entry.fd == listener { try accept(listener) } else { try answer(entry.fd) }
    }
  }

  private func accept(_ listener: Int32) throws {
    let client = Glibc.accept(listener, nil, nil)
    guard client >= 0 else { return }
    _ = fcntl(client, F_SETFD, FD_CLOEXEC)
    lastClient += 1
    clients[client] = "c\(lastClient)"
    try preservation.preserve(client, named: "c\(lastClient)")
  }

  private func answer(_ client: Int32) throws {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(client, &buffer, buffer.count)
    let text = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    for line in text.split(separator: "\n") {
      switch line {
      case "forget": return try forget(client)
      case "plant": try preservation.preserve(1, named: "unknown")
      case "hung", "hung-kept": try storeHungUp(named: String(line), polled: line == "hung")
      default: break
      }
      var reply = "\(getpid()) \(line)\n"
      reply.withUTF8 { _ = write(client, $0.baseAddress, $0.count) }
    }
    if count <= 0 { try forget(client) }
  }

  /// A pipe that nobody writes to any more.
  private func storeHungUp(named name: String, polled: Bool) throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return say("pipe: \(errno)") }
    close(ends[1])
    try preservation.preserve(ends[0], named: name, polled: polled)
    close(ends[0])
  }

  private func forget(_ client: Int32) throws {
    guard let name = clients.removeValue(forKey: client) else { return }
    try preservation.forget(named: name)
    close(client)
  }
}

/// Says what the credentials named are, or why they can't be read; then that it is ready.
func readCredentials(_ names: [String]) throws {
  let environment = ServiceEnvironment.current
  let directory = try environment.credentialsDirectory ?? "/nowhere"
  for name in names {
    let text = try? String(contentsOfFile: "\(directory)/\(name)", encoding: .utf8)
    say("credential \(name): \(text ?? "none")")
  }
  for problem in environment.problems { say("problem: \(problem)") }
  try NotifySocket(environment).send([.ready])
  while true { pause() }
}
