// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// Promise 2: a save leaves the old state or the new, at every crash point, on every error.
@Suite("State: faults", .offThePool) struct FaultTests {
  private static let first = Array("the first state".utf8)
  private static let second = Array("the second, a little longer".utf8)
  private static let third = Array("3".utf8)
  /// Of lengths with which the file ends in the middle of a sector, at its end, and in the header's.
  private static let news = [0, 8, 27, 75].map { (0..<$0).map { UInt8(0x41 + $0 % 26) } }

  /// A disk on which these were saved, one after another.
  private static func disk(_ states: [[UInt8]]) throws -> DiskImage {
    let files = CrashFileSystem()
    let store = try FaultProof.open(files)
    for state in states { try store.save(state) }
    return files.visible
  }

  /// Disks to begin with, and what they hold.
  private static func beginnings() throws -> [(DiskImage, [UInt8]?)] {
    var disks = [
      (DiskImage(), nil), (try disk([first]), first), (try disk([first, second]), second),
      (try disk([first, second, third]), third),
    ]
    var crashed = try disk([first, second])
    crashed.files[".s.new"] = [1, 2, 3]
    disks.append((crashed, second))
    var torn = try disk([first, second])
    torn.files["s.0"] = Array(try #require(torn.files["s.0"]).dropLast(3))
    disks.append((torn, second))
    return disks
  }

  @Test func oneSave() throws { try prove(Self.news[...]) }

  /// The file was opened in advance, and nothing else changes: also not what a disk makes of it.
  @Test(.long) func oneSaveWithoutDescriptors() throws {
    try prove(Self.news.suffix(2), inShortage: true)
  }

  private func prove(
    _ news: ArraySlice<[UInt8]>, inShortage: Bool = false
  ) throws {
    var proof = FaultProof()
    for (image, old) in try Self.beginnings() {
      for new in news {
        _ = proof.save(new, over: image, holding: old, inShortage: inShortage)
      }
    }
    print("A save: \(proof.cases) cases on \(proof.disks) different disks.")
    #expect(proof.violations.isEmpty, "\(proof.violations.prefix(10))")
    #expect(proof.cases > 10_000)
  }

  /// The reserve is for one; the others need the number that it has freed, which the next can have.
  @Test func aSaveWithoutDescriptorsSucceedsAndTheNextIsAnErrorUntilThereAreSome() throws {
    let files = CrashFileSystem()
    let store = try FaultProof.open(files)
    try store.save(Self.first)
    files.limitDescriptors(to: 0)
    try store.save(Self.second)
    #expect(try FaultProof.open(CrashFileSystem(files.visible)).load()?.bytes == Self.second)
    #expect(throws: StateError.system(purpose: "save the state in /state", errno: EMFILE)) {
      try store.save(Self.third)
    }
    files.limitDescriptors(to: 1)
    try store.save(Self.third)
    files.recover()
    #expect(try store.load()?.bytes == Self.third)
  }

  /// A crash in each of three saves, each of which begins with what the crash before it has left.
  @Test func threeSavesWithACrashInEach() throws {
    var proof = FaultProof()
    var disks: [DiskImage: [UInt8]?] = [DiskImage(): nil]
    for state in [Self.first, Self.second, Self.third] {
      var next: [DiskImage: [UInt8]?] = [:]
      for (image, old) in disks {
        for reached in proof.save(state, over: image, holding: old, faults: [.crash, .error(EIO)]) {
          // What is in a file that will be removed decides nothing.
          var reached = reached
          if FaultProof.hasLeftover(reached) { reached.files[".s.new"] = [1] }
          if next[reached] != nil { continue }
          let files = CrashFileSystem(reached)
          next[reached] = .some(try FaultProof.open(files).load()?.bytes)
        }
      }
      disks = next
    }
    print(
      "Three saves: \(proof.cases) cases on \(proof.disks) different disks, \(disks.count) in the end."
    )
    #expect(proof.violations.isEmpty, "\(proof.violations.prefix(10))")
  }

  /// Opening, sweeping and loading: nothing of it may change what is there.
  @Test func loads() throws {
    var proof = FaultProof()
    for (image, old) in try Self.beginnings() {
      for fault in FaultProof.faults {
        var index = 0
        while true {
          let files = CrashFileSystem(image)
          files.fail(at: index, fault)
          let store = try? StateStore("/state", "s", version: 2, files: files)
          let found = store.flatMap { try? $0.load() }
          // Unless it says that a file can't be read.
          if let found, found.broken.isEmpty { #expect(found.bytes == old) }
          _ = proof.check(files, [old], "\(fault) at call \(index) of a load")
          if !files.isFaultDone { break }
          index += 1
        }
      }
    }
    print("Loads: \(proof.cases) cases on \(proof.disks) different disks.")
    #expect(proof.violations.isEmpty, "\(proof.violations.prefix(10))")
  }

  @Test func settingAside() throws {
    var proof = FaultProof()
    for (image, old) in try Self.beginnings() where old != nil {
      var index = 0
      while true {
        let files = CrashFileSystem(image)
        files.fail(at: index, .crash)
        if let store = try? FaultProof.open(files) { _ = try? store.setAside() }
        _ = proof.check(files, [old, nil], "crash at call \(index) of setting aside")
        if !files.isFaultDone { break }
        index += 1
      }
    }
    print("Setting aside: \(proof.cases) cases on \(proof.disks) different disks.")
    #expect(proof.violations.isEmpty, "\(proof.violations.prefix(10))")
  }

  /// The proof can fail: without either sync the promise is broken, and it says so.
  @Test(arguments: [CrashFileSystem.Lie.fileSync, .directorySync])
  func aSyncThatLiesIsFoundOut(_ lie: CrashFileSystem.Lie) throws {
    var proof = FaultProof()
    for (image, old) in try Self.beginnings() {
      _ = proof.save(Self.news[3], over: image, holding: old, faults: [.crash], lies: [lie])
      if !proof.violations.isEmpty { break }
    }
    #expect(!proof.violations.isEmpty)
  }
}
