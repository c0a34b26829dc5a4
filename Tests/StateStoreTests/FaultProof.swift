// SPDX-License-Identifier: Apache-2.0
import CLinux

@testable import DaemonLifecycleState

/// Saves under every fault at every call, and what is found afterwards under every way the disk may have taken it.
struct FaultProof {
  /// How many ways were there for a disk to look after a fault.
  private(set) var cases = 0
  /// How many different disks were looked at.
  private(set) var disks = 0
  private(set) var violations: [String] = []
  /// Disks that were found right, with what they were allowed to hold.
  private var seen: Set<Seen> = []

  private struct Seen: Hashable {
    let image: DiskImage
    let allowed: [[UInt8]?]
  }

  static let faults: [CrashFileSystem.Fault] = [
    .crash, .error(EIO), .error(ENOSPC), .error(EDQUOT), .error(EINTR), .errorAfterEffect(EIO),
    .short,
    .shortThenError(ENOSPC), .shortThenError(EDQUOT),
  ]

  static func open(_ files: CrashFileSystem) throws(StateError) -> StateStore {
    try StateStore("/state", "s", version: 1, files: files)
  }

  /// Whether what a save has written is left. The file of the next save, which is empty, is always there.
  static func hasLeftover(_ image: DiskImage) -> Bool { image.files[".s.new"]?.isEmpty == false }

  // MARK: One save

  /// Every fault at every call of opening a store on `image` and saving `new` in it.
  ///
  /// - Parameter inShortage: The store has loaded, and from then on no further file can be opened.
  mutating func save(
    _ new: [UInt8], over image: DiskImage, holding old: [UInt8]?,
    faults: [CrashFileSystem.Fault] = FaultProof.faults, lies: Set<CrashFileSystem.Lie> = [],
    inShortage: Bool = false
  ) -> Set<DiskImage> {
    var reached: Set<DiskImage> = []
    for fault in faults {
      var index = 0
      while true {
        let files = CrashFileSystem(image, lies: lies)
        files.fail(at: index, fault)
        let store = try? Self.open(files)
        if inShortage, let store {
          _ = try? store.load()
          files.limitDescriptors(to: 0)
        }
        let hasReturned = store.map { (try? $0.save(new)) != nil } ?? false
        let place =
          "\(fault) at call \(index) (\(files.trace.last ?? "none")), \(hasReturned ? "" : "not ")returned"
        let allowed = hasReturned ? [new] : [old, new]
        let isOver = !files.isFaultDone
        reached.formUnion(check(files, allowed, place))
        if fault == .crash {
          restart(files, allowed, place)
        } else {
          goOn(files, store, index, fault, allowed, hasReturned, !Self.hasLeftover(image), place)
        }
        // The fault lay beyond the last call: the save has gone through, and nothing is left to break.
        if isOver { break }
        index += 1
      }
    }
    return reached
  }

  /// What the process does that survives its fault.
  private mutating func goOn(
    _ files: CrashFileSystem, _ store: StateStore?, _ index: Int, _ fault: CrashFileSystem.Fault,
    _ allowed: [[UInt8]?], _ hasReturned: Bool, _ wasClean: Bool, _ place: String
  ) {
    files.recover()
    let call = files.trace.indices.contains(index) ? files.trace[index] : ""
    if [.error(EINTR), .short].contains(fault), !hasReturned {
      violations.append("\(place): should not have mattered")
    }
    // What a call that failed has made, or not removed, the next save removes.
    let mayLeave = call == "remove" || fault == .errorAfterEffect(EIO) || !wasClean
    if !mayLeave, Self.hasLeftover(files.visible) { violations.append("\(place): left its file") }
    guard let store else { return }
    do {
      let found = try store.load()?.bytes
      if !allowed.contains(found) {
        violations.append("\(place): the process then loads \(text(found))")
      }
      let last = Array("after the fault".utf8)
      try store.save(last)
      _ = check(files, [last], "\(place), then saved again")
    } catch {
      violations.append("\(place): then \(error)")
    }
  }

  /// What the next process does when only this one was killed: once it has loaded a state, that must not go again.
  private mutating func restart(
    _ files: CrashFileSystem, _ allowed: [[UInt8]?], _ place: String
  ) {
    files.restartProcess()
    do {
      let found = try Self.open(files).load()?.bytes
      if !allowed.contains(found) {
        violations.append("\(place), killed: the next loads \(text(found))")
      }
      _ = check(files, [found], "\(place), killed, loaded \(text(found)), then a power cut")
    } catch { violations.append("\(place), killed: then \(error)") }
  }

  // MARK: A power cut

  /// Every disk that a power cut may leave now must hold one of `allowed`, and work.
  mutating func check(
    _ files: CrashFileSystem, _ allowed: [[UInt8]?], _ place: String
  ) -> Set<DiskImage> {
    let (images, ways) = files.afterPowerCut()
    cases += ways
    for image in images where seen.insert(Seen(image: image, allowed: allowed)).inserted {
      disks += 1
      if let problem = Self.problem(of: image, allowed) {
        violations.append("\(place): \(problem)")
        seen.remove(Seen(image: image, allowed: allowed))
      }
    }
    return images
  }

  static func problem(of image: DiskImage, _ allowed: [[UInt8]?]) -> String? {
    let files = CrashFileSystem(image)
    do {
      let store = try open(files)
      let found = try store.load()
      guard allowed.contains(found?.bytes) else { return "loads \(text(found?.bytes))" }
      if hasLeftover(files.visible) { return "left the file of a save" }
      let next = Array("the next".utf8)
      try store.save(next)
      guard try store.load()?.bytes == next else { return "does not load what is saved next" }
      return nil
    } catch {
      return "\(error)"
    }
  }

  private func text(_ bytes: [UInt8]?) -> String { Self.text(bytes) }
  static func text(_ bytes: [UInt8]?) -> String {
    bytes.map { "\"\(String(decoding: $0, as: UTF8.self))\"" } ?? "nothing"
  }
}
