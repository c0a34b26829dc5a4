// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
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
  var answer: (BusWireCall) -> Reaction = { _ in .silence }
  private(set) var calls: [BusWireCall] = []
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
    while !clients[index].isGone, let call = BusWireCall.take(from: &clients[index].received) {
      handle(call, index)
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

  private func handle(_ call: BusWireCall, _ index: Int) {
    let isForBus = call.interface == BusObject.bus.interface
    let reaction: Reaction
    switch call.member {
    case "Hello" where isForBus: reaction = .reply([.string(":1.99")])
    case "AddMatch" where isForBus, "RemoveMatch" where isForBus: reaction = .reply([])
    case "GetNameOwner" where isForBus:
      reaction =
        owners[call.strings[0]].map { .reply([.string($0)]) }
        ?? .error("org.freedesktop.DBus.Error.NameHasNoOwner", "nobody")
    default:
      calls.append(call)
      reaction = answer(call)
    }
    react(reaction, to: call, index)
  }

  /// Answers a call of the first client that was left without an answer.
  func reply(_ reaction: Reaction, to call: BusWireCall) { react(reaction, to: call, 0) }

  private func react(_ reaction: Reaction, to call: BusWireCall, _ index: Int) {
    let bus = BusObject.bus.destination
    switch reaction {
    case .silence: break
    case .reply(let values):
      let sender = owners[call.destination] ?? bus
      send(.reply, [5: .uint32(call.serial), 7: .string(sender)], values, index)
    case .error(let name, let text):
      send(
        .error, [4: .string(name), 5: .uint32(call.serial), 7: .string(bus)], [.string(text)],
        index)
    }
  }

  /// To every client.
  func signal(_ member: String, of object: BusObject, from sender: String, _ body: [BusWireValue]) {
    let fields: [UInt8: BusWireValue] = [
      1: .objectPath(object.path), 2: .string(object.interface), 3: .string(member),
      7: .string(sender),
    ]
    for index in clients.indices { send(.signal, fields, body, index) }
  }

  func setOwner(of name: String, to unique: String) {
    let old = owners[name] ?? ""
    owners[name] = unique
    signal(
      "NameOwnerChanged", of: BusObject.bus, from: BusObject.bus.destination,
      [.string(name), .string(old), .string(unique)])
  }

  private enum Kind: UInt8 {
    case reply = 2
    case error, signal
  }

  /// The header's fields have the specification's codes: 1 path, 2 interface, 3 member, 4 error, 5 reply serial, 7 sender,
  /// 8 signature, 9 descriptors.
  private func send(
    _ kind: Kind, _ fields: [UInt8: BusWireValue], _ body: [BusWireValue], _ index: Int
  ) {
    var content = BusWireWriter()
    for value in body { content.value(value) }
    var fields = fields
    if !body.isEmpty { fields[8] = .signature(body.map(\.signature).joined()) }
    let descriptors = content.descriptors
    if !descriptors.isEmpty { fields[9] = .uint32(UInt32(descriptors.count)) }
    serial += 1
    var message = BusWireWriter(bytes: [UInt8(ascii: "l"), kind.rawValue, 0, 1])
    message.integer(UInt32(content.bytes.count))
    message.integer(serial)
    message.value(
      .array(
        of: "(yv)",
        fields.sorted { $0.key < $1.key }.map { .structure([.byte($0.key), .variant($0.value)]) }))
    message.align(8)
    message.bytes += content.bytes
    var control = BusWireWriter()
    if !descriptors.isEmpty {  // cmsghdr as 64-bit Linux lays it out
      control.integer(UInt64(16 + 4 * descriptors.count))
      control.integer(Int32(SOL_SOCKET))
      control.integer(Int32(1))  // SCM_RIGHTS
      for descriptor in descriptors { control.integer(descriptor) }
      control.align(8)
    }
    message.bytes.withUnsafeBytes { bytes in
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
