// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleState

/// What outlives the process.
struct PollState: Codable, Equatable, Sendable {
  /// The number of the last poll that was printed.
  var count = 0
  /// What was read last; `nil` as long as every poll has failed.
  var lastValue: String?
}

extension PollState {
  /// A count that was never written by us is no state: below zero, or so high that it can't go on.
  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    count = try values.decode(Int.self, forKey: .count)
    lastValue = try values.decodeIfPresent(String.self, forKey: .lastValue)
    guard (0..<Int.max / 2).contains(count) else {
      throw DecodingError.dataCorruptedError(
        forKey: .count, in: values, debugDescription: "\(count) is no count")
    }
  }
}

/// Where it is kept: the old state or the new one is there, whatever happens to the machine.
typealias PollStore = CodableStateStore<PollState>

extension PollStore {
  /// Opens the store in a directory, which is made if need be.
  convenience init(directory: String) throws {
    try Self.makeDirectory(directory)
    self.init(try StateStore(directory: directory))
  }

  private static func makeDirectory(_ path: String) throws(SystemError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    let failure = SystemError("create \(path)")
    guard failure.code == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex
    else { throw failure }
    try makeDirectory(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError("create \(path)") }
  }
}
