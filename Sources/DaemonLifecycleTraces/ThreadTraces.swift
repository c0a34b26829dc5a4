// SPDX-License-Identifier: Apache-2.0
internal import CLinux
internal import CTraces

/// Finds where threads of this process that run Swift jobs wait.
enum ThreadTraces {
  private static let mostThreads = 64
  private static let mostFrames = 64
  /// How many functions of a stack are named, from the innermost.
  private static let mostNames = 12

  /// A sentence for each thread that runs a job.
  static func sentences() -> [String] {
    let memory = clinux_open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
    guard memory >= 0 else { return [] }
    defer { close(memory) }
    var found: [pid_t: String] = [:]
    var known: [UInt: Frame] = [:]
    var running = Array(threads().prefix(mostThreads))
    // A thread that is about to wait, or that waits for a processor, has some time for that.
    for _ in 0..<10 where !running.isEmpty {
      running.removeAll { thread in
        guard let stack = stack(of: thread, memory, &known) else { return false }
        if let end = stack.firstIndex(where: \.isJob) {
          let names = names(in: stack[..<end]).prefix(mostNames)
          if !names.isEmpty { found[thread] = names.joined(separator: ", ") }
        }
        return true
      }
      if !running.isEmpty { usleep(10_000) }
    }
    return found.sorted { $0.key < $1.key }.map { "thread \($0.key) waits in \($0.value)" }
  }

  private static func threads() -> [pid_t] {
    guard let folder = opendir("/proc/self/task") else { return [] }
    defer { closedir(folder) }
    var threads: [pid_t] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        // The kernel ends each name with a NUL.
        $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
      }
      if let thread = pid_t(name) { threads.append(thread) }
    }
    return threads.sorted()
  }

  struct Frame {
    /// The name as in the sources, or the linker's; `nil` where it is not known.
    let name: String?
    /// The file name of the program or library.
    let object: String
    let offset: UInt

    /// Whether it is the runtime's function that runs a job.
    var isJob: Bool {
      name.map { $0.hasPrefix("swift_job_run") || $0.hasPrefix("swift::runJob") } ?? false
    }
    var isSystem: Bool { object.hasPrefix("libc.so") || object.hasPrefix("ld-linux") }
    /// Whether it is this package's, the runtime's, or glue of the compiler. A runtime may be stripped, or linked in.
    var isInternal: Bool {
      if object.hasPrefix("libswift") || object.hasPrefix("libdispatch") { return true }
      guard let name else { return false }
      return ["swift_", "swift::", "Swift.", "DaemonLifecycle.", "DaemonSystemd.", "_dispatch"]
        .contains { name.hasPrefix($0) }
        || ["thunk", "partial apply forwarder"].contains { name.hasPrefix($0) }
    }
  }

  /// The stack of a thread that waits; `nil` of others, empty of the calling one. `known` has the frames found so far.
  static func stack(of thread: pid_t, _ memory: Int32, _ known: inout [UInt: Frame]) -> [Frame]? {
    withUnsafeTemporaryAllocation(of: UInt.self, capacity: mostFrames) { addresses in
      let count = ctraces_stack(thread, memory, addresses.baseAddress, Int32(mostFrames))
      if count == 0 { return nil }
      return addresses[..<max(0, Int(count))].map { address in
        if let frame = known[address] { return frame }
        var object: UnsafePointer<CChar>?
        var offset: UInt = 0
        let name = ctraces_name(address, &object, &offset)
        defer { free(name) }
        let path = object.map { String(cString: $0) } ?? "?"
        let frame = Frame(
          name: name.map { String(cString: $0) },
          object: path.split(separator: "/").last.map(String.init) ?? path, offset: offset)
        known[address] = frame
        return frame
      }
    }
  }

  /// The names to show: the C library's function that was called, and the program's functions.
  static func names(in stack: ArraySlice<Frame>) -> [String] {
    let system = stack.prefix { $0.isSystem }.last { $0.name != nil }?.name
    var others: [String] = []
    for frame in stack where !frame.isSystem && !frame.isInternal {
      let name =
        frame.name.map(short) ?? "\(frame.object)+0x\(String(frame.offset, radix: 16))"
      // A hook is called by way of its protocol, which has a function of the same name.
      if others.last != name { others.append(name) }
    }
    guard !others.isEmpty else { return [] }
    return (system.map { [$0] } ?? []) + others
  }

  /// `Orders.shouldSaveState` of `shop.Orders.shouldSaveState(DaemonLifecycle.ShouldSaveState) async throws -> ()`.
  static func short(_ name: String) -> String {
    var text = Substring(name)
    for prefix in ["suspend resume partial function for ", "await resume partial function for "] {
      if let place = text.firstRange(of: prefix) { text = text[place.upperBound...] }
    }
    if let witness = text.firstRange(of: "protocol witness for "),
      let type = text.firstRange(of: " in conformance ")
    {
      let method = path(in: text[witness.upperBound..<type.lowerBound]).split(separator: ".").last
      let type = path(in: text[type.upperBound...]).split(separator: ".").dropFirst()
      return (type + (method.map { [$0] } ?? [])).joined(separator: ".")
    }
    let isClosure = text.contains("closure #")
    if isClosure, let place = text.ranges(of: ") in ").last ?? text.ranges(of: " in ").last {
      text = text[place.upperBound...]
    }
    let parts = path(in: text).split(separator: ".")
    let short = (parts.count > 1 ? parts.dropFirst() : parts[...]).joined(separator: ".")
    return isClosure ? "closure in \(short)" : short
  }

  /// `shop.Store.read` of `static shop.(Store in _643EAFDB).read() -> ()`: a private type is in parentheses, with the
  /// number of its file.
  private static func path(in text: Substring) -> String {
    var plain = ""
    var rest = text
    while let open = rest.firstIndex(of: "("), let place = rest[open...].firstRange(of: " in _"),
      let close = rest[place.upperBound...].firstIndex(of: ")"),
      !rest[rest.index(after: open)..<place.lowerBound].contains("(")
    {
      plain += rest[..<open] + rest[rest.index(after: open)..<place.lowerBound]
      rest = rest[rest.index(after: close)...]
    }
    plain += rest
    let ends = ["(", "<", " -> ", " : "].compactMap { plain.firstRange(of: $0)?.lowerBound }
    return plain[..<(ends.min() ?? plain.endIndex)].split(separator: " ").last.map(String.init)
      ?? ""
  }
}
