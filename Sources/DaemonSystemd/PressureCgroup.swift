import CLinux

/// Where this process's control group is in the file system.
///
/// Pure but for `folder()`: what the kernel's files say is taken as it is, whoever has written it.
enum PressureCgroup {
  /// The folder of the control group that this process is in; nil where there is no unified hierarchy, or it is
  /// not mounted where this process could see it.
  static func folder() throws(SystemdError) -> String? {
    guard let path = try path(inCgroupFile: readProcFile("/proc/self/cgroup")) else { return nil }
    return try folder(of: path, inMountInfo: readProcFile("/proc/self/mountinfo"))
  }

  /// The path in the unified hierarchy: what comes after `0::`. Source: cgroups(7).
  static func path(inCgroupFile bytes: [UInt8]) throws(SystemdError) -> [UInt8]? {
    for line in bytes.split(separator: 10) {
      let parts = line.split(separator: colon, maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, decimal(parts[0], as: UInt32.self) != nil else {
        throw .malformedInput(
          "/proc/self/cgroup has the line \"\(text(line))\", which is not id:controllers:path.")
      }
      guard parts[0].elementsEqual([zero]), parts[1].isEmpty else { continue }
      guard parts[2].first == slash else {
        throw .malformedInput(
          "/proc/self/cgroup has the path \"\(text(parts[2]))\", which is not absolute.")
      }
      return Array(parts[2])
    }
    return nil
  }

  /// The folder of the control group `path`, by the mounts that a mountinfo file lists; nil if no cgroup2 mount
  /// shows it. Source: proc_pid_mountinfo(5).
  static func folder(of path: [UInt8], inMountInfo bytes: [UInt8]) throws(SystemdError) -> String? {
    // "/.." is where a control group outside of this process's namespace begins.
    guard !path.starts(with: "/..".utf8) else { return nil }
    var found: [UInt8]?
    for line in bytes.split(separator: 10) {
      guard let mount = try cgroupMount(line), let rest = remainder(of: path, below: mount.root)
      else { continue }
      found = mount.point + rest  // a later mount lies over an earlier one
    }
    guard let found else { return nil }
    guard let folder = String(validating: found, as: UTF8.self) else {
      throw .malformedInput("The control group's folder \"\(text(found[...]))\" is not UTF-8.")
    }
    return folder
  }

  private static func cgroupMount(
    _ line: ArraySlice<UInt8>
  ) throws(SystemdError) -> (root: [UInt8], point: [UInt8])? {
    let words = line.split(separator: space)
    // id parent major:minor root point options [optional…] - type source super-options
    guard words.count >= 9, let dash = words[6...].firstIndex(where: { $0.elementsEqual([minus]) }),
      words.count > dash + 2
    else {
      throw .malformedInput(
        "/proc/self/mountinfo has the line \"\(text(line))\", which has too few words.")
    }
    guard words[dash + 1].elementsEqual("cgroup2".utf8) else { return nil }
    guard let root = unescaped(words[3]), let point = unescaped(words[4]), root.first == slash,
      point.first == slash
    else {
      throw .malformedInput(
        "/proc/self/mountinfo has the line \"\(text(line))\", whose paths are malformed.")
    }
    return (root, point == [slash] ? [] : point)
  }

  /// What is left of `path` under `root`, beginning with a slash or empty; nil if it is not under it.
  private static func remainder(of path: [UInt8], below root: [UInt8]) -> ArraySlice<UInt8>? {
    if path == [slash] { return root == [slash] ? [] : nil }
    if root == [slash] { return path[...] }
    guard path.starts(with: root) else { return nil }
    let rest = path.dropFirst(root.count)
    return rest.isEmpty || rest.first == slash ? rest : nil
  }

  /// Space, tab, newline and backslash are written as \ and three octal digits.
  private static func unescaped(_ word: ArraySlice<UInt8>) -> [UInt8]? {
    var result: [UInt8] = []
    var at = word.startIndex
    while at < word.endIndex {
      guard word[at] == backslash else {
        result.append(word[at])
        at += 1
        continue
      }
      guard word.endIndex - at >= 4 else { return nil }
      var value = 0
      for byte in word[(at + 1)..<(at + 4)] {
        guard byte >= zero, byte < zero + 8 else { return nil }
        value = value * 8 + Int(byte - zero)
      }
      guard let byte = UInt8(exactly: value) else { return nil }
      result.append(byte)
      at += 4
    }
    return result
  }

  /// For sentences: long lines shortened, control characters made visible.
  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    VisibleText.line(String(decoding: bytes.prefix(200), as: UTF8.self))
      + (bytes.count > 200 ? "…" : "")
  }

  private static let zero = UInt8(ascii: "0")
  private static let colon = UInt8(ascii: ":")
  private static let slash = UInt8(ascii: "/")
  private static let space = UInt8(ascii: " ")
  private static let minus = UInt8(ascii: "-")
  private static let backslash = UInt8(ascii: "\\")
}

/// A file of /proc, whole: such files have no size to ask for, and are done when read(2) gives nothing.
private func readProcFile(_ path: String) throws(SystemdError) -> [UInt8] {
  let number = clinux_open(path, O_RDONLY | O_CLOEXEC)
  guard number >= 0 else { throw .system("open \(path)", errno: clinux_errno()) }
  let file = OwnedDescriptor(owning: number)
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 16384)
  while bytes.count < 64 << 20 {
    let count = read(file.rawValue, &buffer, buffer.count)
    if count < 0, clinux_errno() == EINTR { continue }
    guard count >= 0 else { throw .system("read \(path)", errno: clinux_errno()) }
    if count == 0 { return bytes }
    bytes.append(contentsOf: buffer[..<count])
  }
  throw .malformedInput("\(path) is larger than 64 MiB.")
}
