// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A client of a server in this process or another, with deadlines.
package final class Peer {
  package struct Failure: Error { let description: String }

  private let socket: Int32

  /// - Parameter address: `127.0.0.1:7777`, or a path.
  package init(_ address: String) throws {
    if address.hasPrefix("/") {
      socket = try unixSocket(SOCK_STREAM, at: address, Foundation.connect)
    } else {
      socket = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      var name = sockaddr_in()
      name.sin_family = sa_family_t(AF_INET)
      guard let port = UInt16(address.split(separator: ":").last ?? "") else {
        throw Failure(description: "no port in \(address)")
      }
      name.sin_port = port.bigEndian
      name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      try connect(&name)
    }
    var limit = timeval(tv_sec: 100, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  private func connect<Address>(_ address: inout Address) throws {
    let size = socklen_t(MemoryLayout<Address>.size)
    let done = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(socket, $0, size) }
    }
    guard done == 0 else { throw Failure(description: "connect: errno \(errno)") }
  }

  deinit { close(socket) }

  package func send(_ text: String) { send(Array(text.utf8)) }

  package func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Foundation.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// How much it takes without waiting.
  package func sendUntilFull(_ bytes: [UInt8], beyond limit: Int) -> Int {
    var total = 0
    while true {
      let count = Foundation.send(
        socket, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      if count > 0 {
        total += count
        continue
      }
      // Full for a moment, while the server is still reading, is not full; nor is it while the server must take more.
      var look = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      if poll(&look, 1, 300) == 0, total > limit { return total }
    }
  }

  /// The peer hears the end of what we say.
  package func endSending() { shutdown(socket, Int32(SHUT_WR)) }

  /// So many bytes, or fewer at the end.
  package func receive(_ count: Int) -> String {
    var bytes = [UInt8](repeating: 0, count: count)
    var have = 0
    while have < count {
      let read = bytes.withUnsafeMutableBytes {
        recv(socket, $0.baseAddress.map { $0 + have }, count - have, 0)
      }
      // A handler for another test's signal has run here; with a time limit, recv(2) does not go on by itself.
      if read < 0, errno == EINTR { continue }
      guard read > 0 else { break }
      have += read
    }
    return String(decoding: bytes[..<have], as: UTF8.self)
  }

  /// What is expected, then the end: true if that is what comes.
  package func hears(_ text: String) -> Bool { receive(text.utf8.count) == text }
  package var hearsTheEnd: Bool {
    var byte: UInt8 = 0
    while true {
      let count = recv(socket, &byte, 1, 0)
      if count < 0, errno == EINTR { continue }
      return count == 0
    }
  }
}
