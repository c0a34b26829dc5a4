// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Whoever sends messages has something else to do: signals, deadlines and the next hook wait for that thread.
@Suite struct BacklogTests {
  /// Blocks the first that tells it of something.
  private final class Reader: LifecyclePart {
    let isBlocked = Atomic<Bool>(false)
    let release = Semaphore()
    let told = Mutex<[(text: String, thread: UInt)]>([])
    let senderHasReturned = Atomic<Bool>(false)

    func receive(_ fact: LifecycleFact) -> MonotonicTime? {
      guard case .info(let text) = fact else { return nil }
      told.withLock { $0.append((text, clinux_this_thread())) }
      if !isBlocked.exchange(true, ordering: .relaxed) { release.wait() }
      return nil
    }
  }

  private let reader = Reader()
  private let core: LifecycleCore
  private let count = 10 * LifecycleCore.mostMessages

  init() throws {
    core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .background,
      parts: [reader])
    try core.executor.listen()
  }

  /// Has a thread send the first message, and others add more meanwhile.
  private func addMessages() async throws {
    let begins = Thread.spawn(named: "sender") { [core, reader] in
      core.handle(.fact(.info("0")))
      reader.senderHasReturned.store(true, ordering: .relaxed)
    }
    #expect(begins)
    try await eventually {
      reader.isBlocked.load(ordering: .relaxed)
        && core.executor.listeningThread.load(ordering: .relaxed) != 0
    }
    for number in 1..<count { core.handle(.fact(.info("\(number)"))) }
  }

  /// - Parameter closes: Whether nobody listens any more by the time that it can be sent.
  @Test(arguments: [false, true]) func whatIsTooMuchIsLeftToTheThreadThatListens(
    closes: Bool
  ) async throws {
    defer { core.close() }
    try await addMessages()
    if closes { core.close() }
    reader.release.signal()
    try await eventually {
      reader.senderHasReturned.load(ordering: .relaxed)
        && reader.told.withLock { $0.count == count }
    }
    let told = reader.told.withLock { $0 }
    #expect(told.map(\.text) == (0..<count).map { "\($0)" })
    let own = told.count { $0.thread == told[0].thread }
    #expect(closes || own == LifecycleCore.mostMessages)
  }

  /// Found by an attack: a later time took the place of the moment at which the rest is sent.
  @Test func aLaterTimeDelaysNoRest() async throws {
    defer { core.close() }
    let gate = Semaphore()
    core.schedule(Sleeper { gate.wait() }, at: core.now)
    try await addMessages()
    reader.release.signal()
    try await eventually { reader.senderHasReturned.load(ordering: .relaxed) }
    core.schedule(Sleeper {}, at: core.now.advanced(by: .seconds(10_000)))
    gate.signal()
    try await eventually { reader.told.withLock { $0.count == count } }
  }

  /// Then nobody waits for the sender, which may not have been given time: what waits for it is in the log.
  @Test(arguments: [false, true]) func anEndAtOnceLogsWhatWaits(ofALease: Bool) async throws {
    let written = Log()
    let queue = LogQueue(write: { written.add($0.message) }, { _ in throw CancellationError() })
    let core = LifecycleCore(
      configuration: .init(escalationDelay: .zero, logging: .off), initialState: .background,
      parts: [reader, LifecycleLog(journal: nil, logging: .all, queue: queue)],
      exitProcess: { written.add("status \($0)") })
    try core.executor.listen()
    let gate = Gate()
    core.add(gate)
    defer { core.close() }
    #expect(Thread.spawn(named: "sender") { core.handle(.fact(.info("0"))) })
    try await eventually { reader.isBlocked.load(ordering: .relaxed) }
    let signal = LifecycleCause(.signal(.sigterm, from: .kernel, coalesced: 1))
    for _ in 1...2 { core.receive(LifecycleEvent(.terminate, cause: signal)) }
    if ofALease { core.endProcess(70) }
    core.receive(LifecycleEvent(.terminate, cause: signal))
    try await eventually { written.all.contains(ofALease ? "status 70" : "status 143") }
    #expect(written.all.contains { $0.hasPrefix("Stopping (SIGTERM") }, "\(written.all)")
    for semaphore in [reader.release, gate.opened] { semaphore.signal() }
  }

  private final class Gate: SaveObserver {
    let opened = Semaphore()
    func shouldSaveState(_ notification: ShouldSaveState) { opened.wait() }
  }
}
