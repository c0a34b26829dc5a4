// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import Synchronization
import TestSupport

@testable import DaemonSystemd

/// A small message bus of our own at a socket, which does what a test requests: it welcomes, refuses, is
/// silent or lies. It has no thread; `step()` does what can be done at once.
final class BusPeer {
  /// What becomes of those who connect.
  enum Manner { case welcomes, hangsUpAtOnce, hangsUpAfterAuthentication }

  enum Reaction {
    case reply([BusWireValue])
    case error(String, String)
    case silence
  }

  private struct Client {
    let socket: Int32
    var received: [UInt8] = []
    var isAuthenticated = false
    var isGone = false
  }

  let path: String
  var address: String { "unix:path=" + path }
  var manner = Manner.welcomes
  /// Who has which well-known name.
  var owners: [String: String] = [
    "org.freedesktop.login1": ":1.10", "org.freedesktop.systemd1": ":1.1",
  ]
  /// Answers what is not for the bus itself.
  var answer: (BusWireMessage) -> Reaction = { _ in .silence }
  private(set) var matches: [String] = []
  private(set) var calls: [BusWireMessage] = []
  private(set) var connectionCount = 0
  private var listener: Int32
  private var clients: [Client] = []
  private var serial: UInt32 = 0

  init() {
    path = shortTemporaryFolder + "bus-" + UUID().uuidString.prefix(8)
    listener = -1
    listen()
  }

  deinit {
    stop()
    unlink(path)
  }

  func listen() {
    unlink(path)
    listener = try! unixSocket(SOCK_STREAM, at: path, bind)
    _ = fcntl(listener, F_SETFL, O_NONBLOCK)
    _ = CLinux.listen(listener, 16)
  }

  /// The bus is gone, with its connections.
  func stop() {
    dropClients()
    if listener >= 0 { close(listener) }
    listener = -1
  }

  func dropClients() {
    for client in clients { close(client.socket) }
    clients = []
    matches = []
  }

  var descriptors: [Int32] { clients.map(\.socket) + (listener >= 0 ? [listener] : []) }

  var hasClients: Bool { !clients.isEmpty }

  // MARK: Working

  func step() {
    while listener >= 0 {
      let socket = accept(listener, nil, nil)
      guard socket >= 0 else { break }
      _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
      connectionCount += 1
      if manner == .hangsUpAtOnce { close(socket) } else { clients.append(Client(socket: socket)) }
    }
    for index in clients.indices { serve(index) }
    for client in clients where client.isGone { close(client.socket) }
    clients.removeAll(where: \.isGone)
  }

  private func serve(_ index: Int) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(clients[index].socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count == 0 { clients[index].isGone = true }
      guard count > 0 else { break }
      clients[index].received += buffer[..<count]
    }
    if !clients[index].isAuthenticated { authenticate(index) }
    guard clients[index].isAuthenticated else { return }
    while !clients[index].isGone, let message = BusWireMessage.take(from: &clients[index].received)
    {
      handle(message, index)
    }
  }

  /// SASL: a line for a line, up to BEGIN.
  private func authenticate(_ index: Int) {
    while let end = clients[index].received.firstIndex(of: UInt8(ascii: "\n")) {
      let line = String(decoding: clients[index].received[...end], as: UTF8.self)
        .trimmingCharacters(in: CharacterSet(charactersIn: "\0\r\n"))
      clients[index].received.removeFirst(end + 1)
      if line == "BEGIN" {
        clients[index].isAuthenticated = manner == .welcomes
        clients[index].isGone = manner == .hangsUpAfterAuthentication
        return
      }
      let answer =
        switch line {
        case "AUTH EXTERNAL": "DATA\r\n"
        case "NEGOTIATE_UNIX_FD": "AGREE_UNIX_FD\r\n"
        default: "OK 0123456789abcdef0123456789abcdef\r\n"
        }
      _ = CLinux.send(clients[index].socket, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
    }
  }

  private func handle(_ message: BusWireMessage, _ index: Int) {
    guard message.kind == .call else { return }
    var reaction: Reaction
    switch (message.interface, message.member) {
    case ("org.freedesktop.DBus", "Hello"): reaction = .reply([.string(":1.99")])
    case ("org.freedesktop.DBus", "AddMatch"):
      matches += message.strings
      reaction = .reply([])
    case ("org.freedesktop.DBus", "RemoveMatch"):
      matches.removeAll { message.strings.contains($0) }
      reaction = .reply([])
    case ("org.freedesktop.DBus", "GetNameOwner"):
      reaction =
        owners[message.strings[0]].map { .reply([.string($0)]) }
        ?? .error("org.freedesktop.DBus.Error.NameHasNoOwner", "nobody")
    default:
      calls.append(message)
      reaction = answer(message)
    }
    react(reaction, to: message, index)
  }

  /// Answers a call of the first client that was left without an answer.
  func reply(_ reaction: Reaction, to call: BusWireMessage) { react(reaction, to: call, 0) }

  private func react(_ reaction: Reaction, to message: BusWireMessage, _ index: Int) {
    switch reaction {
    case .silence: break
    case .reply(let values):
      var reply = BusWireMessage(kind: .reply, body: values)
      reply.fields = [
        5: .uint32(message.serial), 7: .string(owners[message.text(6)] ?? "org.freedesktop.DBus"),
      ]
      send(reply, index)
    case .error(let name, let text):
      var reply = BusWireMessage(kind: .error, body: [.string(text)])
      reply.fields = [
        4: .string(name), 5: .uint32(message.serial), 7: .string("org.freedesktop.DBus"),
      ]
      send(reply, index)
    }
  }

  /// To every client.
  func signal(_ member: String, of object: BusObject, from sender: String, _ body: [BusWireValue]) {
    var message = BusWireMessage(kind: .signal, body: body)
    message.fields = [
      1: .objectPath(object.path), 2: .string(object.interface), 3: .string(member),
      7: .string(sender),
    ]
    for index in clients.indices { send(message, index) }
  }

  func setOwner(of name: String, to unique: String) {
    let old = owners[name] ?? ""
    owners[name] = unique
    signal(
      "NameOwnerChanged", of: BusObject.bus, from: BusObject.bus.destination,
      [.string(name), .string(old), .string(unique)])
  }

  private func send(_ message: BusWireMessage, _ index: Int) {
    serial += 1
    var message = message
    message.serial = serial
    let (bytes, descriptors) = message.encoded()
    var control = BusWire.Writer()
    if !descriptors.isEmpty {  // cmsghdr as 64-bit Linux lays it out
      control.integer(UInt64(16 + 4 * descriptors.count))
      control.integer(Int32(SOL_SOCKET))
      control.integer(Int32(1))  // SCM_RIGHTS
      for descriptor in descriptors { control.integer(descriptor) }
      control.align(8)
    }
    bytes.withUnsafeBytes { bytes in
      control.bytes.withUnsafeBytes { control in
        var vector = iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
        withUnsafeMutablePointer(to: &vector) { vector in
          var header = msghdr()
          header.msg_iov = vector
          header.msg_iovlen = 1
          if !descriptors.isEmpty {
            header.msg_control = .init(mutating: control.baseAddress)
            header.msg_controllen = control.count
          }
          _ = sendmsg(clients[index].socket, &header, Int32(MSG_NOSIGNAL))
        }
      }
    }
  }
}

extension BusWireValue {
  /// `a{sv}`.
  static func properties(_ values: [String: BusWireValue]) -> BusWireValue {
    .array(
      of: "{sv}",
      values.sorted { $0.key < $1.key }.map { .entry(.string($0.key), .variant($0.value)) })
  }
}

/// What callbacks noted.
final class BusLog<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  func append(_ element: Element) { elements.withLock { $0.append(element) } }
  var all: [Element] { elements.withLock { $0 } }
}

/// What works whenever its descriptor is readable, and at its deadline.
protocol BusWorker {
  var fileDescriptor: Int32 { get }
  var deadline: MonotonicTime { get }
  func process()
}

extension BusConnection: BusWorker {}

/// Lets a connection and its peer work until something is so. False when that does not come about.
func pump(_ worker: some BusWorker, _ peer: BusPeer?, until condition: () -> Bool) -> Bool {
  let deadline = MonotonicTime.after(.seconds(100))
  while !condition() {
    guard MonotonicTime.now() < deadline else { return false }
    var waiting = ([worker.fileDescriptor] + (peer?.descriptors ?? []))
      .map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    _ = poll(&waiting, nfds_t(waiting.count), min(100, worker.deadline.milliseconds))
    worker.process()
    peer?.step()
  }
  return true
}

/// Lets them work until nothing is on the way any more: what was sent has been answered and brought.
func settle(_ worker: some BusWorker, _ peer: BusPeer, rounds: Int = 20) -> Bool {
  for _ in 0..<rounds {
    worker.process()
    peer.step()
  }
  return true
}

enum BusTests {
  static let hasLibrary = (try? SDBus.load(BusConnection.Options().library)) != nil

  /// Delays that do not hold a test up.
  static var options: BusConnection.Options {
    var options = BusConnection.Options()
    options.firstDelay = .milliseconds(1)
    options.longestDelay = .milliseconds(20)
    return options
  }

  /// A pipe: its end for reading, and the other one as what logind grants.
  static func lock() -> (end: Int32, granted: BusPeer.Reaction) {
    var ends: [Int32] = [0, 0]
    precondition(clinux_pipe(&ends) == 0)
    return (ends[0], .reply([.descriptor(BusDescriptor(OwnedDescriptor(owning: ends[1])))]))
  }

  static func isHungUp(_ end: Int32) -> Bool { isHungUp(end, within: 0) }

  /// A process that another test has just forked keeps the other end open until it executes its program.
  static func hangsUp(_ end: Int32) -> Bool { isHungUp(end, within: 100_000) }

  private static func isHungUp(_ end: Int32, within milliseconds: Int32) -> Bool {
    var state = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
    return poll(&state, 1, milliseconds) == 1
  }
}
