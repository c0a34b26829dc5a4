import Foundation

/// The state on disk: after a save that succeeded it is there whatever happens to the machine, and a save
/// that fails leaves what was there before.
struct StateFile: Sendable {
  let directory: String
  var path: String { directory + "/state.json" }
  var asidePath: String { path + ".bad" }

  private static let temporaryPrefix = ".state.json."

  /// Creates the directory if need be, and removes what a crash in the middle of a save has left.
  init(directory: String) throws(SystemError) {
    self.directory = directory
    try Self.makeDirectory(directory)
    // Better said now than when there is something to lose. The dot makes it an error not to be a directory.
    guard access(directory + "/.", R_OK | W_OK | X_OK) == 0 else {
      throw SystemError("keep the state in \(directory)")
    }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for name in names where name.hasPrefix(Self.temporaryPrefix) { unlink(directory + "/" + name) }
  }

  private static func makeDirectory(_ path: String) throws(SystemError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    let failure = SystemError("create \(path)")
    guard failure.code == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex
    else { throw failure }
    try makeDirectory(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError("create \(path)") }
  }

  // MARK: Load

  /// The state; a new one when there is none yet.
  func load() throws -> PollState {
    guard access(path, F_OK) == 0 || errno != ENOENT else { return PollState() }
    let bytes = try Descriptor.read(path)
    guard let state = try? JSONDecoder().decode(PollState.self, from: Data(bytes)),
      state.isPlausible
    else { throw Corrupt(path: path) }
    return state
  }

  /// As `load()`; a state that can't be read is complained of and kept aside, and counting begins anew.
  func loadOrSetAside(_ complain: (String) -> Void) throws(SystemError) -> PollState {
    do { return try load() } catch {
      // Otherwise the next save would destroy what somebody may want to mend.
      guard rename(path, asidePath) == 0 else {
        throw SystemError("put the bad state \(path) aside as \(asidePath)")
      }
      complain("\(error) It is kept as \(asidePath); counting begins at 0.")
      return PollState()
    }
  }

  struct Corrupt: Error, CustomStringConvertible {
    let path: String
    var description: String { "The state in \(path) is corrupt." }
  }

  // MARK: Save

  /// Returns when the state is on the disk.
  func save(_ state: PollState) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let bytes = try [UInt8](encoder.encode(state)) + [UInt8(ascii: "\n")]

    let temporary = try writeTemporary(bytes)
    // One step: whoever looks sees the old file or the new one, and never none or a half.
    guard rename(temporary, path) == 0 else {
      let error = SystemError("replace \(path)")
      unlink(temporary)
      throw error
    }
    try syncDirectory()
  }

  /// The name of a file in the same directory, since a rename can't leave a file system, with `bytes` on
  /// disk; none when it throws.
  private func writeTemporary(_ bytes: [UInt8]) throws(SystemError) -> String {
    let temporary = "\(directory)/\(Self.temporaryPrefix)\(UInt64.random(in: 0 ... .max))"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemError("save the state in \(directory)") }
    defer { close(descriptor) }
    do throws(SystemError) {
      try Descriptor(number: descriptor).writeAll(bytes)
      guard fsync(descriptor) == 0 else { throw SystemError("fsync") }
    } catch {
      unlink(temporary)
      throw SystemError("save the state in \(directory)", code: error.code)
    }
    return temporary
  }

  /// Without this, the new name may be lost with the power, though the new file is not.
  private func syncDirectory() throws(SystemError) {
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("open \(directory)") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw SystemError("make \(path) durable") }
  }
}
