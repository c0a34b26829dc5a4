// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import TestSupport

@testable import DaemonLifecycleState

/// A file system that is mounted, in a directory made for it, while a test's body runs.
struct Disk {
  let directory: Folder
  var path: String { directory.path }

  private init(_ options: [String]) throws {
    directory = try Folder()
    try Command.run(["mount"] + options + [directory.path])
  }

  /// In memory.
  static func withMemory<Result>(
    _ options: String, _ body: (Disk) throws -> Result
  ) throws -> Result {
    try with(["-t", "tmpfs", "-o", options, "tmpfs"], body)
  }

  /// On an image, which the kernel brings in order first, as after a power cut.
  static func withImage<Result>(
    _ path: String, _ options: String, _ body: (Disk) throws -> Result
  ) throws -> Result {
    try with(["-t", "ext4", "-o", "loop,\(options)", path], body)
  }

  /// What the body has open on it must be gone for the unmount, so the disk does not outlive a call: an optimized
  /// program would release a disk and a store on it in either order.
  private static func with<Result>(
    _ options: [String], _ body: (Disk) throws -> Result
  ) throws -> Result {
    let disk = try Disk(options)
    defer { disk.unmount() }
    return try body(disk)
  }

  /// A child that another test has just forked has our files open until its exec. Until then the disk stays what it is,
  /// cut off or not, and who mounts the image again gets the same one.
  private func unmount() {
    let end = MonotonicTime.now().advanced(by: .seconds(20))
    while MonotonicTime.now() < end {
      if (try? Command.run(["umount", path])) != nil { return }
      usleep(1000)
    }
    try? Command.run(["umount", "-l", path])
  }

  func remount(_ options: String) throws {
    try Command.run(["mount", "-o", "remount,\(options)", path])
  }

  static let canMount = geteuid() == 0 && (try? withMemory("size=64k") { _ in }) != nil

  /// Whether loop devices can be mounted; if not, the reason.
  static let loopObstacle: String? = {
    guard geteuid() == 0 else { return "mounting needs root" }
    do {
      let directory = try Folder()
      let image = try makeImage(in: directory)
      try withImage(image, "data=ordered") { _ in }
      return nil
    } catch { return "\(error)" }
  }()

  /// An image with an empty ext4 and a journal.
  static func makeImage(in directory: Folder) throws -> String {
    let image = "\(directory.path)/image"
    let file = clinux_open_at(AT_FDCWD, image, O_RDWR | O_CREAT, 0o600)
    defer { close(file) }
    guard ftruncate(file, 4 << 20) == 0 else { throw TestFailure("ftruncate") }
    try Command.run(["mkfs.ext4", "-q", "-F", "-b", "1024", "-J", "size=1", image])
    return image
  }
}

/// A command, run to its end.
enum Command {
  static func run(_ arguments: [String]) throws {
    let variables = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"]
    let command = try TestSupport.ChildProcess(
      "/usr/bin/env", arguments, environment: variables, stderrToStdout: true)
    guard try command.wait() == .status(0) else {
      throw TestFailure("\(arguments.joined(separator: " ")) failed: \(command.output)")
    }
  }
}
