// SPDX-License-Identifier: Apache-2.0
/// The conversation on one connection, without its socket: bytes in, lines, answers out.
///
/// Pure, so that it is tested without a network, and a value, so that it can be handed to the next run as it is.
struct Conversation: Equatable, Sendable {
  /// Input that is not answered yet. As long as there is room for answers it is half a line.
  private(set) var input: [UInt8] = []
  /// Answers that the socket has not taken yet.
  private(set) var output: [UInt8] = []
  /// Whether nothing more will be answered: the connection ends when the output is sent.
  private(set) var isOver = false
  /// How many bytes of the input are known to have no newline.
  private var searched = 0

  /// A peer with so many unread answers is not read from until there is room again.
  static let outputLimit = 256 * 1024

  /// A new conversation, or one that another run has handed over.
  init(input: [UInt8] = [], output: [UInt8] = [], isOver: Bool = false) {
    self.input = input
    self.output = output
    self.isOver = isOver
  }

  /// Whether to read from the peer.
  var wantsInput: Bool { !isOver && output.count < Self.outputLimit }

  // MARK: What happens

  mutating func receive(_ bytes: some Sequence<UInt8>, _ settings: Settings) {
    guard !isOver else { return }
    input += bytes
    answer(settings)
  }

  /// The peer has ended its side. Input without a newline at its end is a line too.
  mutating func receiveEnd(_ settings: Settings) {
    guard !isOver else { return }
    answer(settings)
    if !isOver, !input.isEmpty { append(input[...], settings) }
    end()
  }

  /// The socket has taken so many bytes; there may be room for more answers.
  mutating func sent(_ count: Int, _ settings: Settings) {
    output.removeFirst(count)
    answer(settings)
  }

  /// Answers nothing more. Half a line is dropped, since no answer to it was promised.
  mutating func end() {
    isOver = true
    input = []
    searched = 0
  }

  // MARK: Answers

  /// Answers line by line, as long as there is room.
  private mutating func answer(_ settings: Settings) {
    var start = 0
    while !isOver, output.count < Self.outputLimit {
      guard let end = newline(from: max(start, searched)) else {
        searched = input.count
        break
      }
      append(input[start..<end], settings)
      start = end + 1
      searched = start
    }
    if isOver { return }
    input.removeFirst(start)
    searched -= start
    // A line that is longer need not be read to its end to be refused.
    if searched == input.count, input.count > settings.lineLimit { refuse(settings) }
  }

  /// memchr(3) is about thirty times as fast as a loop over the bytes.
  private func newline(from start: Int) -> Int? {
    input.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, start < bytes.count,
        let found = memchr(base + start, Int32(UInt8(ascii: "\n")), bytes.count - start)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }

  private mutating func append(_ line: ArraySlice<UInt8>, _ settings: Settings) {
    guard line.count <= settings.lineLimit else { return refuse(settings) }
    output += settings.prefix.utf8
    output += line
    output.append(UInt8(ascii: "\n"))
  }

  private mutating func refuse(_ settings: Settings) {
    output += "error: a line has at most \(settings.lineLimit) bytes\n".utf8
    end()
  }
}
