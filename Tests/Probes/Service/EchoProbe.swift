// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Glibc

/// Answers each line with its process id and the line; one thread, no lifecycle: the module `DaemonSystemd` alone.
///
/// The listener comes from a socket unit, as "listener". A connection is stored when it is accepted, as "c"
/// and a number, so that the next run goes on with it; "forget" closes it, and "unknown" is what a test has
/// put into the store that this program does not know.
final class EchoProbe {
  private var clients: [Int32: String] = [:]
  private var lastClient = 0
  private let store: DescriptorStore
  private let notify: NotifySocket
  private let environment = ServiceEnvironment.current

  init() throws {
    notify = try NotifySocket(address: environment.notifySocket)
    store = try DescriptorStore(environment)
  }

  func run() throws -> Never {
    signal(SIGPIPE, SIG_IGN)
    let passed = try PassedDescriptors.take(from: environment)
    for description in passed.descriptions {
      say("passed \(description.name): \(description.kind)")
    }
    guard let listener = passed.take(named: "listener") else {
      say("no listener")
      exit(64)
    }
    for name in passed.names where name.hasPrefix("c") {
      while let client = passed.take(named: name) { clients[client.release()] = name }
      lastClient = max(lastClient, Int(name.dropFirst()) ?? 0)
    }
    for name in try passed.closeRemaining(removingFrom: store) { say("closed unknown \(name)") }
    try notify.send([.ready, .status("\(clients.count) connections")])
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
    try store.store(client, named: "c\(lastClient)")
  }

  private func answer(_ client: Int32) throws {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(client, &buffer, buffer.count)
    let text = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    for line in text.split(separator: "\n") {
      switch line {
      case "forget": return try forget(client)
      case "plant": try store.store(1, named: "unknown")
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
    try store.store(ends[0], named: name, polled: polled)
    close(ends[0])
  }

  private func forget(_ client: Int32) throws {
    guard let name = clients.removeValue(forKey: client) else { return }
    try store.remove(named: name)
    close(client)
  }
}

/// Says what the credentials named are, or why they can't be read; then that it is ready.
func readCredentials(_ names: [String]) throws {
  let environment = ServiceEnvironment.current
  let credentials = try Credentials(environment)
  for name in names {
    do throws(SystemdError) {
      say("credential \(name): \(try credentials.string(named: name) ?? "none")")
    } catch { say("credential \(name): \(error)") }
  }
  for problem in environment.problems { say("problem: \(problem)") }
  try NotifySocket(address: environment.notifySocket).send([.ready])
  while true { pause() }
}
