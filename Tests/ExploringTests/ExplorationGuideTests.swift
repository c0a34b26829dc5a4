// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleExploring
import DaemonLifecycleTesting
import Foundation
import Testing

private protocol Disk: Sendable {
  func write(_ orders: [Int]) async throws
}

/// The guide's daemon, before it is mended and after.
private actor Orders: SaveObserver {
  private(set) var accepted: [Int] = []
  private var isSaved = true
  private let disk: any Disk
  private let isMended: Bool

  init(_ disk: any Disk, isMended: Bool) { (self.disk, self.isMended) = (disk, isMended) }

  func accept(_ order: Int) {
    accepted.append(order)
    isSaved = false
  }

  func shouldSaveState(_ notification: ShouldSaveState) async throws {
    guard !isSaved else { return }
    if isMended {
      let orders = accepted
      try await disk.write(orders)
      isSaved = accepted == orders
    } else {
      isSaved = true
      try await disk.write(accepted)
    }
  }
}

private actor FakeDisk: Disk {
  struct Full: Error {}
  private(set) var written: [Int] = []
  private let fails: @Sendable () -> Bool

  init(fails: @escaping @Sendable () -> Bool) { self.fails = fails }

  func write(_ orders: [Int]) throws {
    if fails() { throw Full() }
    written = orders
  }
}

private struct Lost: Error { let orders: [Int] }

@Suite struct ExplorationGuideTests {
  private func daemon(isMended: Bool) -> ExploredDaemon {
    { run in
      let disk = FakeDisk { run.shouldFail("disk full") }
      let orders = Orders(disk, isMended: isMended)
      run.mock.addObserver(orders)
      run.mock.addForeground(name: "accepting") {
        for try await number in run.mock.ticks(every: .seconds(1)) {
          await orders.accept(number)
        }
      }
      return {
        guard run.mock.exitResult?.exitStatus == 0 else { return }
        let (accepted, written) = (await orders.accepted, await disk.written)
        guard accepted == written else { throw Lost(orders: accepted) }
      }
    }
  }

  @Test func theGuideShowsWhatIsFound() async throws {
    let guide = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path:
        "../../Sources/DaemonLifecycleExploring/DaemonLifecycleExploring.docc/ExploringADaemon.md")
    let text = try String(contentsOf: guide, encoding: .utf8)
    do {
      try await MockLifecycleSubject.explore(for: .seconds(20), daemon(isMended: false))
      Issue.record("nothing found")
    } catch {
      #expect("\(error)".hasPrefix("Lost(orders: ["))
      // Another version of Swift may make other jobs of the same code.
      #if compiler(>=6.3)
        for line in "\(error)".split(separator: "\n") where !line.hasPrefix("Found in ") {
          #expect(text.contains(line), "\(error)")
        }
      #endif
    }
  }

  @Test func theMendedOneIsRight() async throws {
    let explored = try await MockLifecycleSubject.explore(
      for: .seconds(1), daemon(isMended: true))
    print("mended: \(explored)")
  }
}
