import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What is polled.
enum PollSource: Equatable, Sendable {
  case file(String)
  case http(URL)

  /// A path, or a URL.
  init(_ text: String) throws(SettingsError) {
    if text.hasPrefix("http://") || text.hasPrefix("https://") {
      guard let url = URL(string: text), url.host?.isEmpty == false else {
        throw SettingsError("source \"\(text)\" is no URL; write http://host/path")
      }
      self = .http(url)
    } else if text.isEmpty || text.contains("://") {
      throw SettingsError("source \"\(text)\" is neither a file's path nor an http:// URL")
    } else {
      self = .file(text)
    }
  }

  /// The first line of what is there now, without white space around it.
  ///
  /// - Parameter token: What an HTTP server is told about who asks.
  func read(token: String? = nil) async throws -> String {
    let bytes =
      switch self {
      case .file(let path): try Descriptor.read(path, limit: Self.limit)
      case .http(let url): try await Self.fetch(url, token)
      }
    let text = String(decoding: bytes.prefix(Self.limit), as: UTF8.self)
    return text.prefix { !$0.isNewline }.trimmingCharacters(in: .whitespaces)
  }

  /// More than this is not looked at, so that what is printed is a line and not a novel.
  private static let limit = 2000

  private static func fetch(_ url: URL, _ token: String?) async throws -> [UInt8] {
    var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
    request.timeoutInterval = 10
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    let answer: Download.Answer
    do { answer = try await Download.beginning(of: request, limit: limit) } catch {
      throw FetchError(description: "Could not get \(url): \(error.localizedDescription)")
    }
    guard answer.status == 200 else {
      throw FetchError(description: "\(url) answers with status \(answer.status).")
    }
    return answer.bytes
  }

  struct FetchError: Error, CustomStringConvertible { let description: String }
}
