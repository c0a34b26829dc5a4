// SPDX-License-Identifier: Apache-2.0
import Glibc

/// fork(2) is hidden from Swift; this process has but threads that the child does not need.
func forkThePlainWay() -> pid_t {
  let symbol = dlsym(nil, "fork")!
  typealias Fork = @convention(c) () -> pid_t
  return unsafeBitCast(symbol, to: Fork.self)()
}

/// Threads that are not Swift's or the package's.
enum Thread {
  static func detach(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      {
        Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(Box(body)).toOpaque())
  }
}

func entries(of directory: String) -> [String] {
  guard let stream = opendir(directory) else { return [] }
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if !name.hasPrefix(".") { names.append(name) }
  }
  return names
}

func link(of path: String) -> String {
  var bytes = [CChar](repeating: 0, count: 64)
  let length = max(0, readlink(path, &bytes, bytes.count))
  return String(decoding: bytes[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// What proc_pid_stat(5) says of this process's threads.
func threads() -> [(name: String, isAsleep: Bool, isOwn: Bool)] {
  let own = link(of: "/proc/thread-self")
  return entries(of: "/proc/self/task").compactMap { thread in
    guard let file = fopen("/proc/self/task/\(thread)/stat", "r") else { return nil }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 128)
    fgets(&buffer, 128, file)
    let text = String(decoding: buffer.prefix { $0 > 10 }.map { UInt8($0) }, as: UTF8.self)
    let parts = text.split(whereSeparator: { "()".contains($0) })
    return parts.count < 3
      ? nil : (String(parts[1]), parts[2].hasPrefix(" S"), own.hasSuffix("/\(thread)"))
  }
}

func threadCount() -> Int { threads().filter { $0.name == "lifecycle" }.count }
func descriptorCount() -> Int { entries(of: "/proc/self/fd").count }

/// What is allocated, in kB. Resident memory also depends on how many threads a busy machine brings.
func allocatedKilobytes() -> Int {
  // malloc_info(3), which Glibc's module lacks.
  typealias Info = @convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32
  let info = unsafeBitCast(dlsym(nil, "malloc_info")!, to: Info.self)
  var text: UnsafeMutablePointer<CChar>?
  var size = 0
  let stream = open_memstream(&text, &size)!
  _ = info(0, stream)
  fclose(stream)
  defer { free(text) }
  // The last of each type are the totals of all heaps.
  var totals: [Substring: Int] = [:]
  for line in String(cString: text!).split(separator: "\n") {
    let words = line.split(separator: "\"")
    if words.count > 2, let size = Int(words[words.count - 2]) { totals[words[1]] = size }
  }
  let free = ["fast", "rest"].reduce(0) { $0 + totals[$1, default: 0] }
  return (totals["current", default: 0] + totals["mmap", default: 0] - free) / 1024
}

/// Blocks the calling thread for good. A sleep(3) alone ends with the first signal that the kernel gives to its thread.
@inline(never)
func blockThread() -> Never { while true { sleep(1000) } }

/// Waits for ten seconds at most until something is true. A reading of /proc while threads come and go may miss one.
func waits(for isTrue: () -> Bool) -> Bool {
  for _ in 0..<2000 {
    if isTrue() { return true }
    usleep(5000)
  }
  return isTrue()
}

/// Waits until the package's threads have ended: until ten readings of /proc in a row find none.
///
/// A new one has its creator's name until it runs, and holds descriptors already: all threads but ours must be asleep.
func threadsGone() {
  var readings = 0
  while readings < 10 {
    let all = threads()
    let areGone =
      !all.contains { $0.name == "lifecycle" } && all.count { !$0.isAsleep } <= 1
    readings = areGone ? readings + 1 : 0
    usleep(1000)
  }
}
