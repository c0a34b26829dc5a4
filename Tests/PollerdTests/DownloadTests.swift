import Foundation
import XCTest

@testable import Pollerd

/// A server that sends for ever.
final class DownloadTests: XCTestCase {
  func testABodyWithoutEndIsReadToTheLimit() async throws {
    let server = try EndlessServer()
    let source = try PollSource("http://127.0.0.1:\(server.port)/")
    let value = try await source.read()
    XCTAssertEqual(value, "first line")
    // It notices that nobody reads any more.
    let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
    let deadline = Task {
      try await Task.sleep(for: .seconds(30))
      continuation.finish()
    }
    server.whenEnded { continuation.yield() }
    var iterator = ended.makeAsyncIterator()
    let hasEnded: Void? = await iterator.next()
    deadline.cancel()
    XCTAssertNotNil(hasEnded, "the connection is still read")
  }

  func testAnAnswerThatIsShorterThanTheLimitIsWhole() async throws {
    let server = try EndlessServer(isEndless: false)
    let value = try await PollSource("http://127.0.0.1:\(server.port)/").read()
    XCTAssertEqual(value, "first line")
  }

  func testAPollThatIsCancelledEndsAtOnce() async throws {
    let server = try EndlessServer(answers: false)
    let source = try PollSource("http://127.0.0.1:\(server.port)/")
    let poll = Task { try await source.read() }
    poll.cancel()
    do {
      _ = try await poll.value
      XCTFail("there was no answer to give")
    } catch {}
  }
}

/// One connection to 127.0.0.1, on a thread of its own.
private final class EndlessServer: Sendable {
  let port: UInt16
  private let ended = DispatchSemaphore(value: 0)

  init(isEndless: Bool = true, answers: Bool = true) throws {
    signal(SIGPIPE, SIG_IGN)
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failure = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) | listen(listener, 1) | getsockname(listener, $0, &size)
      }
    }
    guard failure == 0 else { throw SystemError("listen") }
    port = UInt16(bigEndian: address.sin_port)
    let ended = ended
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      close(listener)
      if answers { Self.answer(connection, isEndless) }
      ended.signal()
      // Until the other end has had enough.
      var rest = [UInt8](repeating: 0, count: 4096)
      while read(connection, &rest, rest.count) > 0 {}
      close(connection)
    }
  }

  /// Calls `body` when the connection is broken, or its answer is sent.
  func whenEnded(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread { [ended] in
      ended.wait()
      body()
    }
  }

  private static func answer(_ connection: Int32, _ isEndless: Bool) {
    var request = [UInt8](repeating: 0, count: 4096)
    _ = read(connection, &request, request.count)
    let length = isEndless ? "" : "Content-Length: 11\r\n"
    let head = "HTTP/1.1 200 OK\r\n\(length)Connection: close\r\n\r\nfirst line\n"
    guard write(connection, head, head.utf8.count) == head.utf8.count, isEndless else { return }
    let filler = [UInt8](repeating: 0x78, count: 65536)
    while write(connection, filler, filler.count) > 0 {}
  }
}
