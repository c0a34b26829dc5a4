// SPDX-License-Identifier: Apache-2.0
import CBench
import Counting
import DaemonLifecycle
import Synchronization

// MARK: What is measured

/// The hooks of N observers, called by the subject, with a report of each.
func subject<O: CountingObserver>(count: Int, of _: O.Type, concurrent: Bool) async {
  let lifecycle = await startedSubject()
  let observers = (0..<count).map { _ in O() }
  let phase = LifecyclePhase(order: 0, isConcurrent: concurrent)
  for observer in observers { lifecycle.addObserver(observer, phase: phase) }
  var saves = Saves(lifecycle)
  await report(count: count) {
    let report = await saves.next()
    check(report.entries.count == count, "\(report.entries.count) entries for \(count) observers")
  }
  await checkCounts(observers)
}

/// N closures that do not wait.
func closures(count: Int) async {
  let lifecycle = await startedSubject()
  let counter = Counter()
  let tokens = (0..<count).map { _ in
    lifecycle.observe(Ping.self) { _ in counter.value.add(1, ordering: .relaxed) }
  }
  await report(count: count) { await lifecycle.post(Ping()) }
  check(counter.value.load(ordering: .relaxed) % count == 0, "a closure was not called")
  withExtendedLifetime(tokens) {}
}

/// Adding to, and removing from, a running daemon that has N observers.
func registry(count: Int) async {
  let lifecycle = await startedSubject()
  let observers = (0..<count).map { _ in ClassObserver() }
  for observer in observers { lifecycle.addObserver(observer) }
  await lifecycle.post(Ping())
  let guests = (0..<min(count, 1000)).map { _ in ClassObserver() }
  var adding: [Double] = []
  var removing: [Double] = []
  for _ in 0..<max(15, 1000 / guests.count) {
    adding.append(timed(guests.count) { for guest in guests { lifecycle.addObserver(guest) } })
    await lifecycle.post(Ping())  // what an addition entails has been done
    let leaving = guests.shuffled()
    removing.append(
      timed(guests.count) { for guest in leaving { lifecycle.removeObserver(guest) } })
    await lifecycle.post(Ping())
  }
  say("add", median(adding))
  say("remove", median(removing))
  withExtendedLifetime(observers) {}
}

// MARK: What it is measured against

/// The same hooks, called by a plain loop on an executor of the same kind: another subject's, in a hook that
/// takes loops to run. As with `post`, the caller is on Swift's pool, and waits for the end.
func loop<O: CountingObserver>(
  count: Int, of _: O.Type,
  _ call: @escaping @Sendable ([any CountingObserver]) async -> Void = callAll
) async {
  let observers: [any CountingObserver] = (0..<count).map { _ in O() }
  await onAnExecutor(count: count) { await call(observers) }
  await checkCounts(observers)
}

private func onAnExecutor(count: Int, _ body: @escaping @Sendable () async -> Void) async {
  let lifecycle = await startedSubject()
  let (loops, continuation) = AsyncStream.makeStream(of: (@Sendable () async -> Void).self)
  let token = lifecycle.observe(Ping.self) { _ in for await loop in loops { await loop() } }
  Task { await lifecycle.post(Ping()) }
  await report(count: count) {
    await withCheckedContinuation { caller in
      continuation.yield {
        await body()
        caller.resume()
      }
    }
  }
  withExtendedLifetime(token) {}
}

/// A child task for each, which is what telling them together needs.
@Sendable func groupAll(_ observers: [any CountingObserver]) async {
  await withDiscardingTaskGroup { group in
    for observer in observers {
      group.addTask {
        do { try await observer.shouldSaveState(ShouldSaveState()) } catch {
          check(false, "\(error)")
        }
      }
    }
  }
}

@Sendable func callAll(_ observers: [any CountingObserver]) async {
  for observer in observers {
    do { try await observer.shouldSaveState(ShouldSaveState()) } catch {
      check(false, "\(error)")
    }
  }
}
