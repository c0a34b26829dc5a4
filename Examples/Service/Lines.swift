// SPDX-License-Identifier: Apache-2.0
/// The lines that a client sends.
struct Lines: AsyncSequence, Sendable {
  private let socket: Socket
  /// More than this is no line.
  private static let limit = 1000

  init(of socket: Socket) { self.socket = socket }

  func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

  struct Iterator: AsyncIteratorProtocol {
    fileprivate let socket: Socket
    /// What has come and has not been given out.
    private var bytes: [UInt8] = []

    fileprivate init(socket: Socket) { self.socket = socket }

    /// The next line; `nil` at the end. Half a line at the end is none.
    mutating func next() async throws -> String? {
      while true {
        if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
          defer { bytes.removeFirst(end + 1) }
          return String(decoding: bytes[..<end], as: UTF8.self)
        }
        guard bytes.count <= Lines.limit else { throw TooLong() }
        guard let more = try await socket.receive() else { return nil }
        bytes += more
      }
    }
  }

  struct TooLong: Error, CustomStringConvertible {
    var description: String { "A client sent a line of more than \(Lines.limit) bytes." }
  }
}
