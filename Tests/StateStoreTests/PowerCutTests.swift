// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// A real ext4 whose cable is pulled before each call of a save: the kernel stops writing (EXT4_IOC_SHUTDOWN without a
/// flush of the journal). Then it is mounted as after a power cut.
@Suite("State: a real disk's power cut", .serialized, .offThePool) struct PowerCutTests {
  /// `noauto_da_alloc`: without ext4's kindness to programs that forget to sync.
  /// All of them when STATE_KILLS asks for the long form of these tests.
  private static let mounts =
    getenv("STATE_KILLS") == nil
    ? ["data=writeback,noauto_da_alloc"]
    : [
      "data=ordered", "data=ordered,noauto_da_alloc", "data=writeback,noauto_da_alloc",
      "data=journal",
    ]
  private static let old = [UInt8](repeating: 0x6f, count: 5_000)
  private static let new = [UInt8](repeating: 0x6e, count: 9_000)

  /// The kernel stops in the middle of the save, and drops what it has not written.
  @Test(.mountsImages, arguments: mounts)
  func theKernelStopsAtEachCall(_ options: String) throws {
    var found: [String: Int] = [:]
    var index = 0
    while true {
      let directory = try Folder()
      let image = try Disk.makeImage(in: directory)
      let stopped = Mutex(false)
      var hasReturned = false
      try Disk.withImage(image, options) { disk in
        try StateStore(directory: disk.path).save(Self.old)
        let (path, last) = (disk.path, index)
        hasReturned =
          (try? Self.save(on: disk) { call, _ in
            if call == last { stopped.withLock { $0 = Self.stop(path) } }
          }) != nil
        // The last round: after the save.
        if !stopped.withLock({ $0 }), index > 0 { #expect(hasReturned && Self.stop(path)) }
      }
      let state = try Self.load(image, options)
      let allowed: [[UInt8]?] = hasReturned ? [Self.new] : [Self.old, Self.new]
      #expect(allowed.contains(state), "stopped before call \(index) with \(options)")
      found[state == Self.new ? "new" : "old", default: 0] += 1
      if !stopped.withLock({ $0 }) { break }
      index += 1
    }
    print(
      "\(options), stopped: \(index + 1) times: \(found["old"] ?? 0) old, \(found["new"] ?? 0) new."
    )
    #expect(index > 10)
  }

  /// What is cut off here is really lost: without the syncs, a save that has returned is not there.
  @Test(.mountsImages) func withoutSyncItIsLost() throws {
    let directory = try Folder()
    let image = try Disk.makeImage(in: directory)
    try Disk.withImage(image, "data=writeback,noauto_da_alloc") { disk in
      try StateStore(directory: disk.path).save(Self.old)
      try Self.save(on: disk, lies: true) { _, _ in }
      #expect(Self.stop(disk.path))
    }
    #expect(try Self.load(image, "data=writeback") == Self.old)
  }

  /// Opens, loads and saves the new state.
  private static func save(
    on disk: Disk, lies: Bool = false, _ before: @escaping @Sendable (Int, String) -> Void
  ) throws {
    let files = WatchedFileSystem(LinuxFileSystem.shared, lies: lies, before: before)
    let store = try StateStore(disk.path, "state", version: 1, files: files)
    try store.save(new)
  }

  private static func load(_ image: String, _ options: String) throws -> [UInt8]? {
    try Disk.withImage(image, options) { disk in
      let store = try StateStore(directory: disk.path)
      let found = try store.load()
      guard found?.broken.isEmpty ?? true else { throw TestFailure("\(found?.broken ?? [])") }
      guard disk.directory.size(of: ".state.new") == 0 else { throw TestFailure("left a file") }
      return found?.bytes
    }
  }

  /// ioctl(2) is variadic, which Swift can't call; integers and pointers are passed alike in either way by the two
  /// architectures, and this is only a test.
  private static let ioctl = unsafeBitCast(
    dlsym(nil, "ioctl"), to: (@convention(c) (Int32, UInt, UnsafeMutableRawPointer) -> Int32).self)

  /// EXT4_IOC_SHUTDOWN (Linux 4.11), no flush of the journal: what a power cut is to the disk.
  private static func stop(_ path: String) -> Bool {
    let directory = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(directory) }
    var withoutLog: UInt32 = 2  // EXT4_GOING_FLAGS_NOLOGFLUSH
    return ioctl(directory, 0x8004_587d, &withoutLog) == 0
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips, and says why, where an image can't be mounted.
  fileprivate static var mountsImages: Self {
    .disabled(
      if: Disk.loopObstacle != nil,
      "No real file system can be cut off here: \(Disk.loopObstacle ?? "").")
  }
}
