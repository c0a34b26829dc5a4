// SPDX-License-Identifier: Apache-2.0
import Glibc

/// One client of `LoadProbe`: sends numbered lines in pieces, and compares each answer with the line.
final class LoadClient {
  enum Mode {
    /// Goes on with new lines, or new connections.
    case busy
    /// Sends and hears what it has begun.
    case finishing
    /// Has its last lines, and waits for the server to end the connection.
    case last
    /// Sends without reading, as long as it is taken.
    case stuffing
    /// As busy, and the server may end the connection at any time.
    case through
  }

  let id: Int
  let staysConnected: Bool
  var mode = Mode.busy
  private(set) var socket: Int32 = -1
  private var isConnecting = false
  /// Its connection, that was to stay, is over.
  private(set) var isGone = false
  var isReady = false
  private(set) var restsUntil = 0.0
  var answersInStep = 0
  private(set) var connects = 0

  private var random: UInt64
  private var sequence = 0
  private var lastSent = 0.0
  /// Not sent yet.
  private var output: [UInt8] = []
  /// Half an answer.
  private var input: [UInt8] = []
  /// The lines whose answers have not come, oldest first.
  private var expected = Queue()
  private var own = LoadCounts()

  init(id: Int, staysConnected: Bool) {
    self.id = id
    self.staysConnected = staysConnected
    random = UInt64(id) &* 0x9e37_79b9_7f4a_7c15 &+ 1
  }

  /// Nothing is half sent or unanswered.
  var isDone: Bool {
    isGone || (expected.isEmpty && output.isEmpty && (staysConnected || socket < 0))
  }
  /// In `stuffing`: nothing was taken for a while.
  func hasSentAll(_ now: Double) -> Bool {
    switch mode {
    case .stuffing: now - lastSent > 0.5
    case .through: true
    default: isGone || output.isEmpty
    }
  }
  var summary: String {
    "client \(id): socket \(socket), \(expected.count) unanswered, \(output.count) unsent, \(input.count) half,"
      + " expects \(String(decoding: expected.first?.prefix(40) ?? [], as: UTF8.self))"
  }

  func events(_ now: Double) -> Int16 {
    if socket < 0 { return 0 }
    let sends = isConnecting || (!output.isEmpty && restsUntil <= now)
    return Int16(POLLIN) | (sends ? Int16(POLLOUT) : 0)
  }

  func count(_ counts: inout LoadCounts) {
    own.unanswered += isGone ? 0 : expected.count
    counts.lines += own.lines
    counts.connects += connects
    counts.sentBytes += own.sentBytes
    counts.receivedBytes += own.receivedBytes
    counts.refused += own.refused
    counts.dropped += own.dropped
    counts.bad += own.bad
    counts.unanswered += own.unanswered
  }

  // MARK: Acting

  func act(_ now: Double, _ port: UInt16, _ counts: inout LoadCounts) {
    if isGone || restsUntil > now && !isReady { return }
    if socket < 0 {
      guard mode == .busy else { return }
      return connect(port)
    }
    if isConnecting { return finishConnecting() }
    isReady = false
    if mode == .stuffing {
      restsUntil = 0
      for _ in 0..<50 where output.count < 10_000 { sayLine() }
    } else if !receive() {
      return
    }
    if restsUntil > now { return }
    let isBusy = mode == .busy || mode == .through
    if isBusy, output.isEmpty, expected.count < 20 { sayMore() }
    send(now)
    if !staysConnected, output.isEmpty, expected.isEmpty, sequence > 0 || mode != .busy {
      hangUp(now)
    }
  }

  private func next(_ bound: Int) -> Int {
    random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(random >> 33) % bound
  }

  private func sayMore() {
    if !staysConnected, sequence > 0 { return }
    for _ in 0...next(staysConnected ? 6 : 2) { sayLine() }
  }

  private func sayLine() {
    sequence += 1
    let length = next(40) == 0 ? 5000 : next(300)
    let letters = (0..<length).map { UInt8(ascii: "a") + UInt8(($0 + sequence) % 26) }
    let line = Array("\(id) \(connects) \(sequence) ".utf8) + letters
    expected.append(line)
    output += line
    output.append(UInt8(ascii: "\n"))
  }

  func sayLastLines(half: Bool) {
    for _ in 0..<50 { sayLine() }
    if half { output += "half a line".utf8 }
    restsUntil = 0
  }

  // MARK: The socket

  private func connect(_ port: UInt16) {
    socket = Glibc.socket(
      AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
    // What the kernel takes of a client that does not read has to be answered in the time of a stop.
    var size: Int32 = 65_536
    for buffer in [SO_SNDBUF, SO_RCVBUF] { setsockopt(socket, SOL_SOCKET, buffer, &size, 4) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    (sequence, output, input, expected) = (0, [], [], Queue())
    let done = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if done == 0 {
      connects += 1
      return
    }
    if errno == EINPROGRESS { isConnecting = true } else { wasRefused() }
  }

  private func finishConnecting() {
    var look = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
    guard poll(&look, 1, 0) > 0 else { return }
    isConnecting = false
    var failure: Int32 = 0
    var size = socklen_t(4)
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size)
    if failure == 0 { connects += 1 } else { wasRefused() }
  }

  private func wasRefused() {
    own.refused += 1
    close(socket)
    socket = -1
    restsUntil = monotonicSeconds() + 0.05
  }

  private func hangUp(_ now: Double) {
    close(socket)
    socket = -1
    restsUntil = now + Double(next(20)) / 1000
  }

  /// From now on it reads. What was not taken was not sent.
  func stopStuffing() {
    mode = .last
    expected.removeLast(output.count { $0 == UInt8(ascii: "\n") })
    output = []
  }

  /// A piece at a time; between two of them it may rest, in the middle of a line.
  private func send(_ now: Double) {
    while !output.isEmpty {
      let isBusy = mode == .busy || mode == .through
      let count = isBusy ? min(output.count, 1 + next(400)) : output.count
      let sent = output.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, count, 0) }
      if sent < 0 {
        if errno != EAGAIN, errno != EINTR { wasDropped("send", errno) }
        return
      }
      own.sentBytes += sent
      lastSent = now
      output.removeFirst(sent)
      if isBusy, next(3) == 0 {
        restsUntil = now + Double(next(30)) / 1000
        return
      }
    }
  }

  /// False at the connection's end.
  private func receive() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 16384)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      if count < 0 {
        if errno == EAGAIN || errno == EINTR { return true }
        wasDropped("recv", errno)
        return false
      }
      if count == 0 {
        if mode == .through {
          leave()
        } else if mode == .last {
          // What it is to hear at the end, and nothing after it.
          own.unanswered += expected.count
          if !input.isEmpty { own.bad += 1 }
          leave()
        } else {
          wasDropped("end", 0)
        }
        return false
      }
      own.receivedBytes += count
      input += buffer[..<count]
      check()
    }
  }

  private func check() {
    var start = 0
    while let end = input[start...].firstIndex(of: UInt8(ascii: "\n")) {
      let answer = input[start..<end]
      start = end + 1
      own.lines += 1
      answersInStep += 1
      guard let line = expected.first, line.elementsEqual(answer) else {
        own.bad += 1
        if own.bad < 3 {
          say("load: \(summary), got \(String(decoding: answer.prefix(60), as: UTF8.self))")
        }
        continue
      }
      expected.removeFirst()
    }
    input.removeFirst(start)
  }

  private func wasDropped(_ what: String, _ number: Int32) {
    own.dropped += 1
    if own.dropped < 2 { say("load: dropped by \(what) \(number): \(summary)") }
    if staysConnected { leave() } else { hangUp(monotonicSeconds()) }
  }

  private func leave() {
    close(socket)
    socket = -1
    isGone = true
  }
}

/// First in, first out, without moving what is in it each time.
struct Queue {
  private var items: [[UInt8]] = []
  private var head = 0

  var count: Int { items.count - head }
  var isEmpty: Bool { count == 0 }
  var first: [UInt8]? { isEmpty ? nil : items[head] }

  mutating func append(_ item: [UInt8]) { items.append(item) }
  mutating func removeLast(_ count: Int) { items.removeLast(count) }

  mutating func removeFirst() {
    head += 1
    if head * 2 > items.count {
      items.removeFirst(head)
      head = 0
    }
  }
}
