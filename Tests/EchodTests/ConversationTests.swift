// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

@testable import echod

@Suite struct ConversationTests {
  private let settings = Settings()

  private func text(_ conversation: Conversation) -> String {
    String(decoding: conversation.output, as: UTF8.self)
  }

  @Test func linesAreAnsweredWhenTheyAreWhole() {
    var conversation = Conversation()
    conversation.receive("one\ntw".utf8, settings)
    #expect(text(conversation) == "one\n" && conversation.input == Array("tw".utf8))
    conversation.receive("o\n\nthree\n".utf8, settings)
    #expect(text(conversation) == "one\ntwo\n\nthree\n" && conversation.input.isEmpty)
  }

  @Test func theLastLineNeedsNoNewline() {
    var conversation = Conversation()
    conversation.receive("one\ntwo".utf8, settings)
    conversation.receiveEnd(settings)
    #expect(text(conversation) == "one\ntwo\n" && conversation.isOver)
    conversation.receiveEnd(settings)
    #expect(text(conversation) == "one\ntwo\n")
  }

  @Test(arguments: [0, 1, 99, 100, 101, 1000])
  func aLineMayBeSoLong(_ length: Int) {
    var settings = settings
    settings.lineLimit = 100
    let line = [UInt8](repeating: UInt8(ascii: "x"), count: length)
    for piece in [1, 7, 5000] {
      var conversation = Conversation()
      var rest = line[...]
      while !rest.isEmpty {
        conversation.receive(rest.prefix(piece), settings)
        rest = rest.dropFirst(piece)
      }
      // More than the limit is refused before its end has come.
      #expect(conversation.isOver == (length > 100))
      conversation.receive("\n".utf8, settings)
      let answer = length > 100 ? "error: a line has at most 100 bytes\n".utf8.count : length + 1
      #expect(conversation.output.count == answer)
    }
  }

  @Test func aReaderThatIsSlowIsNotReadFrom() {
    var conversation = Conversation()
    let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
    var lines = 0
    while conversation.wantsInput {
      conversation.receive(line, settings)
      lines += 1
    }
    // What has come already waits.
    for _ in 0..<10 { conversation.receive(line, settings) }
    #expect(conversation.output.count == lines * 1000 && conversation.input.count == 10_000)
    #expect(conversation.output.count <= Conversation.outputLimit + 1000)
    conversation.sent(20_000, settings)
    #expect(conversation.output.count == (lines - 10) * 1000 && conversation.input.isEmpty)
    #expect(conversation.wantsInput)
  }

  @Test func afterTheEndNothingIsAnswered() {
    var conversation = Conversation()
    conversation.receive("one\nhalf".utf8, settings)
    conversation.end()
    conversation.receive(" a line\n".utf8, settings)
    #expect(text(conversation) == "one\n" && conversation.input.isEmpty && conversation.isOver)
  }

  @Test func aReloadCountsFromTheNextAnswer() {
    var conversation = Conversation()
    conversation.receive("one\ntw".utf8, settings)
    var changed = settings
    changed.prefix = "> "
    conversation.receive("o\n".utf8, changed)
    #expect(text(conversation) == "one\n> two\n")
  }

  /// Whatever the pieces, the pauses of the reader and the restarts: the answers are the lines.
  @Test func nothingIsLostOrDoubledInAnyPieces() throws {
    var random = SeededGenerator(seed: 11)
    for _ in 0..<SeededGenerator.inputs(usual: 300) / 10 {
      var sent: [UInt8] = []
      for _ in 0..<random.below(200) {
        let length = random.chance(5) ? random.below(3000) : random.below(40)
        sent += (0..<length).map { _ in UInt8(ascii: "a") + UInt8(random.below(26)) }
        sent.append(UInt8(ascii: "\n"))
      }
      var conversation = Conversation()
      var heard: [UInt8] = []
      var rest = sent[...]
      while !rest.isEmpty {
        let count = 1 + random.below(random.chance(10) ? 5000 : 50)
        conversation.receive(rest.prefix(count), settings)
        rest = rest.dropFirst(count)
        if random.chance(50) {
          let count = random.below(conversation.output.count + 1)
          heard += conversation.output.prefix(count)
          conversation.sent(count, settings)
        }
        if random.chance(3) {
          let bytes = try JSONEncoder().encode(
            Handover(nextID: 2, conversations: [1: conversation]))
          let handover = try JSONDecoder().decode(Handover.self, from: bytes)
          conversation = try #require(handover.conversations[1])
        }
      }
      heard += conversation.output
      #expect(heard == sent)
    }
  }
}

@Suite struct HandoverTests {
  @Test(arguments: [
    ("c1", 1), ("c70000", 70000), ("c", nil), ("c0", nil), ("c-1", nil), ("c01", nil), ("c1x", nil),
    ("state", nil), ("c9999999999999999999999", nil), ("c+1", nil),
  ])
  func namesOfConnections(_ name: String, _ id: Int?) {
    #expect(StoredName.id(name) == id)
    if let id { #expect(StoredName.connection(id) == name) }
  }
}
