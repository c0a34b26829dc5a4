// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A socket that tasks can wait for, and stop waiting for when they are cancelled: what a library for servers brings.
final class Socket: Sendable {
  enum Readiness { case readable, writable }

  private let number: Int32
  private static let queue = DispatchQueue(label: "clockd.sockets")

  init(_ number: Int32) { self.number = number }
  deinit { close(number) }

  // MARK: Waiting

  /// Returns when the socket is ready, and throws `CancellationError` when the task is cancelled.
  func wait(until readiness: Readiness) async throws {
    // Dispatch's objects may be used from any thread, but are not declared to be `Sendable`.
    nonisolated(unsafe) let source: any DispatchSourceProtocol =
      switch readiness {
      case .readable: DispatchSource.makeReadSource(fileDescriptor: number, queue: Self.queue)
      case .writable: DispatchSource.makeWriteSource(fileDescriptor: number, queue: Self.queue)
      }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        source.setEventHandler { source.cancel() }
        // It runs once, when Dispatch no longer uses the descriptor, which may then be closed.
        source.setCancelHandler { continuation.resume() }
        source.activate()
      }
    } onCancel: {
      source.cancel()
    }
    try Task.checkCancellation()
  }

  // MARK: A client

  /// What has come, waiting for it if need be; `nil` at the end.
  func receive() async throws -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(number, &buffer, buffer.count, 0)
      if count >= 0 { return count == 0 ? nil : Array(buffer.prefix(count)) }
      guard errno == EAGAIN || errno == EINTR else { throw SystemError("read from a client") }
      try await wait(until: .readable)
    }
  }

  /// Sends a line.
  func sendLine(_ line: String) async throws {
    var rest = Array((line + "\n").utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else {
        guard errno == EAGAIN || errno == EINTR else { throw SystemError("answer a client") }
        try await wait(until: .writable)
      }
    }
  }

  /// Ends the connection after the last answer. Unread bytes are read first: closed with them, a socket is reset, and
  /// the client may lose the answer.
  func end() {
    shutdown(number, Int32(SHUT_WR))
    var buffer = [UInt8](repeating: 0, count: 4096)
    for _ in 0..<16 where recv(number, &buffer, buffer.count, 0) <= 0 { return }
  }

  // MARK: A listener

  /// Listens at 127.0.0.1; at port 0, which is any that is free.
  init(listeningOn port: UInt16) throws(SystemError) {
    number = socket(AF_INET, Self.stream, 0)
    guard number >= 0 else { throw SystemError("make a socket") }
    var on: Int32 = 1
    setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, 4)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let isListening =
      Self.withAddress(&address) { bind(number, $0, $1) == 0 }
      && listen(number, SOMAXCONN) == 0
    guard isListening else { throw SystemError("listen at 127.0.0.1:\(port)") }
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK)
  }

  #if canImport(Musl)
    private static let stream = SOCK_STREAM
  #else
    private static let stream = Int32(SOCK_STREAM.rawValue)
  #endif

  /// Whether another client may have a descriptor. The last ones are for the daemon, and for Dispatch, which ends a process
  /// that has none left. The next is the lowest that is free.
  private var hasRoom: Bool {
    let next = fcntl(number, F_DUPFD_CLOEXEC, 0)
    if next >= 0 { close(next) }
    let limit = getdtablesize()
    return next >= 0 && next < limit - min(64, limit / 2)
  }

  /// The next client; `nil` when none waits.
  func nextClient() throws(SystemError) -> Socket? {
    while true {
      var waiting = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
      if poll(&waiting, 1, 0) == 0 { return nil }
      guard hasRoom else { throw SystemError("accept a client", code: EMFILE) }
      let client = accept(number, nil, nil)
      if client >= 0 {
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        _ = fcntl(client, F_SETFL, fcntl(client, F_GETFL) | O_NONBLOCK)
        return Socket(client)
      }
      switch errno {
      case EAGAIN: return nil
      case EINTR, ECONNABORTED: continue
      default: throw SystemError("accept a client")
      }
    }
  }

  /// Where it listens.
  var port: UInt16 {
    var address = sockaddr_in()
    _ = Self.withAddress(&address) { pointer, size in
      var size = size
      return getsockname(number, pointer, &size)
    }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func withAddress<Result>(
    _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}

/// A system call failed: `Could not listen at 127.0.0.1:80: Permission denied.`
struct SystemError: Error, CustomStringConvertible {
  let purpose: String
  let code: Int32

  /// The code is that of the call that has just failed.
  init(_ purpose: String, code: Int32 = errno) {
    self.purpose = purpose
    self.code = code
  }

  var description: String { "Could not \(purpose): \(String(cString: strerror(code)))." }
}
