// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

@testable import echod

extension FuzzTarget {
  /// echod's command line, an argument a line; behind an empty line its settings, and behind a NUL what clients say.
  static let echod = FuzzTarget(name: "echod") { input in
    let arguments = input.arguments()
    do throws(UsageError) {
      let options = try Options(parsing: arguments)
      require(!options.listen.isEmpty, "nowhere to listen")
    } catch { requireSentence(error) }
    let settings = settings(input.part(endedBy: 0))
    checkNames(arguments)
    try checkConversation(input.all(), settings)
  }

  private static func settings(_ text: [UInt8]) -> Settings {
    do throws(SettingsError) {
      let settings = try Settings(parsing: String(decoding: text, as: UTF8.self))
      let loaded = try Settings.load(file(with: text))
      require(loaded == settings, "\(loaded) from the file, \(settings) from its text")
      require(
        settings.prefix.utf8.count <= 64 && (1...1 << 20).contains(settings.lineLimit),
        "\(settings)")
      return settings
    } catch {
      require(error.description.hasPrefix("line "), "no place: \(error)")
      require((try? Settings.load(file(with: text))) == nil, "the file is taken, its text is not")
      require((try? Settings.load("/none")) == nil, "there is no such file")
      return Settings(prefix: "> ", lineLimit: 8)
    }
  }

  private static func checkNames(_ names: [String]) {
    for name in names {
      guard let id = StoredName.id(name) else { continue }
      require(id > 0 && StoredName.connection(id) == name, "\(name) became \(id)")
    }
  }

  /// Bytes that come in pieces are answered as those that come at once; a run that takes over goes on as if it had been
  /// there.
  private static func checkConversation(_ bytes: [UInt8], _ settings: Settings) throws {
    var (whole, pieces) = (Conversation(), Conversation())
    require(whole.wantsInput, "it wants nothing")
    whole.receive(bytes, settings)
    whole.receiveEnd(settings)
    for (index, byte) in bytes.enumerated() {
      pieces.receive([byte], settings)
      guard index % 7 == 6 else { continue }
      pieces = try handedOver(pieces)
    }
    pieces.receiveEnd(settings)
    require(whole.isOver && pieces.isOver, "it is not over")
    require(!whole.wantsInput, "it wants more")
    require(whole.output == pieces.output, "\(whole.output) at once, \(pieces.output) in pieces")
    let lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
    guard lines.allSatisfy({ $0.count <= settings.lineLimit }) else { return }
    let asked = lines.last?.isEmpty == true ? lines.dropLast() : lines[...]
    let answers: [UInt8] = asked.flatMap { line -> [UInt8] in
      Array(settings.prefix.utf8) + Array(line) + [10]
    }
    require(whole.output == answers, "\(whole.output) is no answer to \(bytes)")
    let count = whole.output.count / 2
    whole.sent(count, settings)
    require(whole.output == Array(answers.dropFirst(count)), "other bytes are left")
  }

  /// As the next run has it.
  private static func handedOver(_ conversation: Conversation) throws -> Conversation {
    let bytes = try JSONEncoder().encode(Handover(nextID: 2, conversations: [1: conversation]))
    let handover = try JSONDecoder().decode(Handover.self, from: bytes)
    require(handover.nextID == 2, "\(handover)")
    return handover.conversations[1] ?? Conversation()
  }
}
