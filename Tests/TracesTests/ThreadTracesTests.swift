// SPDX-License-Identifier: Apache-2.0
import CLinux
import CTraces
import DaemonLifecycle
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycleTraces

/// What a hook hangs in.
private enum Wait: CaseIterable {
  case sleep, mutex, pipe, poll, semaphore, condition, join

  /// Not inlined, or it would have no frame.
  @inline(never) func hang() {
    switch self {
    case .sleep: CLinux.sleep(1000)
    case .mutex:
      let lock = NSLock()
      lock.lock()
      lock.lock()
    case .pipe:
      let pipe = Pipe()
      _ = pipe.fileHandleForReading.readData(ofLength: 1)
    case .poll: CLinux.poll(nil, 0, -1)
    case .semaphore: DispatchSemaphore(value: 0).wait()
    case .condition:
      let condition = NSCondition()
      condition.lock()
      condition.wait()
    case .join:
      var thread = pthread_t()
      pthread_create(
        &thread, nil,
        { _ in
          CLinux.sleep(1000)
          return nil
        }, nil)
      pthread_join(thread, nil)
    }
  }
}

@Suite(.offThePool) struct ThreadTracesTests {
  /// The number of a new thread that does `body`.
  private func thread(_ body: @escaping @Sendable () -> Void) throws -> pid_t {
    let shared = Shared(number: 0)
    Thread.detachNewThread {
      // PID/task/TID
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
      shared.number.withLock { $0 = pid_t(link?.split(separator: "/").last ?? "") ?? -1 }
      body()
    }
    try eventually("it runs") { shared.number.withLock { $0 != 0 } }
    return shared.number.withLock { $0 }
  }

  private final class Shared: Sendable {
    let number: Mutex<pid_t>
    init(number: pid_t) { self.number = Mutex(number) }
  }

  private func withMemory<T>(_ body: (Int32) throws -> T) throws -> T {
    let memory = clinux_open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
    defer { close(memory) }
    return try body(memory)
  }

  private func stack(of thread: pid_t, _ memory: Int32) -> [ThreadTraces.Frame]? {
    var known: [UInt: ThreadTraces.Frame] = [:]
    return ThreadTraces.stack(of: thread, memory, &known)
  }

  @Test(arguments: Wait.allCases) fileprivate func whatItWaitsInIsNamed(_ wait: Wait) throws {
    let thread = try thread { wait.hang() }
    try withMemory { memory in
      var names: [String] = []
      try eventually("it waits in \(wait): \(names)") {
        names = ThreadTraces.names(in: (stack(of: thread, memory) ?? [])[...])
        return names.contains("Wait.hang")
      }
      #expect(names.contains("closure in ThreadTracesTests.whatItWaitsInIsNamed"), "\(names)")
      if wait == .sleep { #expect(names.first == "sleep") }
    }
  }

  /// Threads that wait in the same place: their functions are looked for in the files once.
  @Test func whatIsKnownIsNotLookedForAgain() throws {
    let thread = try thread { Wait.sleep.hang() }
    try withMemory { memory in
      var known: [UInt: ThreadTraces.Frame] = [:]
      try eventually("it waits") {
        ThreadTraces.stack(of: thread, memory, &known)?.contains { $0.name == "sleep" } == true
      }
      let frame = ThreadTraces.Frame(name: "known", object: "", offset: 0)
      known = known.mapValues { _ in frame }
      let stack = ThreadTraces.stack(of: thread, memory, &known) ?? []
      #expect(!stack.isEmpty && stack.allSatisfy { $0.name == "known" })
    }
  }

  /// A thread that moves is named where it was, or not at all.
  @Test func aThreadThatMovesIsNeverMisnamed() throws {
    let both = Moving()
    let thread = try thread { both.move() }
    defer { both.isOver.store(true, ordering: .relaxed) }
    try withMemory { memory in
      for _ in 0..<LongTests.count(1000, long: 10_000) {
        let names = ThreadTraces.names(in: (stack(of: thread, memory) ?? [])[...])
        let known = [
          "ThreadTracesTests.Moving.first", "ThreadTracesTests.Moving.second",
          "ThreadTracesTests.Moving.move", "closure in ThreadTracesTests.thread",
          "closure in ThreadTracesTests.aThreadThatMovesIsNeverMisnamed",
        ]
        // Between them are frames of Foundation, which begins the thread.
        let own = names.filter { $0.contains("Moving") || $0.contains("Tests") }
        #expect(own.allSatisfy { known.contains($0) }, "\(names)")
        #expect(
          !(own.contains("ThreadTracesTests.Moving.first")
            && own.contains("ThreadTracesTests.Moving.second")), "\(names)")
      }
    }
  }

  private final class Moving: Sendable {
    let isOver = Atomic<Bool>(false)
    @inline(never) func first() { usleep(10) }
    @inline(never) func second() { usleep(10) }
    @inline(never) func move() {
      while !isOver.load(ordering: .relaxed) {
        first()
        second()
      }
    }
  }

  /// Whatever is on the stack, and wherever it is said to be.
  @Test func noAddressIsACrash() throws {
    var random = SeededGenerator(seed: SeededGenerator.chosen)
    var addresses = [UInt](repeating: 0, count: 64)
    let code = unsafeBitCast(dlsym(nil, "malloc"), to: UInt.self)
    let stack = [UInt](repeating: code, count: 4096)
    try withMemory { memory in
      stack.withUnsafeBytes { bytes in
        let base = UInt(bitPattern: bytes.baseAddress!)
        for _ in 0..<LongTests.count(2000, long: 200_000) {
          let pc =
            Bool.random(using: &random)
            ? code &+ .random(in: 0...100_000, using: &random)
            : .random(in: 0 ... .max, using: &random)
          let sp =
            Bool.random(using: &random)
            ? base + .random(in: 0...32_000, using: &random)
            : .random(in: 0 ... .max, using: &random)
          #expect((1...64).contains(ctraces_walk(memory, pc, sp, &addresses, 64)))
        }
      }
    }
  }

  @Test func threadsThatEndMeanwhileAreLeftOut() throws {
    let isOver = Shared(number: 0)
    let maker = try thread {
      while isOver.number.withLock({ $0 == 0 }) { Thread.detachNewThread {} }
    }
    for _ in 0..<LongTests.count(20, long: 100) { _ = ThreadTraces.sentences() }
    isOver.number.withLock { $0 = maker }
  }

  @Test(arguments: [
    (
      "shop.Orders.shouldSaveState(DaemonLifecycle.ShouldSaveState) async throws -> ()",
      "Orders.shouldSaveState"
    ),
    ("(1) await resume partial function for shop.Orders.flush() async -> ()", "Orders.flush"),
    ("closure #1 @Sendable () async -> () in shop.serve(Swift.Int) -> ()", "closure in serve"),
    ("shop.(Store in _643EAFDBA6441671515D9121EE76E49E).read() -> ()", "Store.read"),
    ("static shop.Main.main() -> ()", "Main.main"), ("clock_nanosleep", "clock_nanosleep"),
    ("shop.Cache.count.getter : Swift.Int", "Cache.count.getter"),
    (
      "(1) await resume partial function for protocol witness for DaemonLifecycle.SaveObserver.shouldSaveState("
        + "DaemonLifecycle.ShouldSaveState) async throws -> () in conformance shop.Orders : DaemonLifecycle.SaveObserver"
        + " in shop", "Orders.shouldSaveState"
    ),
  ]) func namesAreShort(_ name: String, _ short: String) {
    #expect(ThreadTraces.short(name) == short)
  }
}
