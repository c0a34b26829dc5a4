// SPDX-License-Identifier: Apache-2.0
import CBench
import Counting
import Foundation
import Synchronization

/// N blocks of a notification centre, called by `post`.
func blocks(count: Int) async {
  let center = NotificationCenter()
  let counter = Counter()
  let name = Notification.Name("ping")
  let tokens = (0..<count).map { _ in
    center.addObserver(forName: name, object: nil, queue: nil) { _ in
      counter.value.add(1, ordering: .relaxed)
    }
  }
  await report(count: count) { center.post(name: name, object: nil) }
  check(counter.value.load(ordering: .relaxed) % count == 0, "a block was not called")
  for token in tokens { center.removeObserver(token) }
}

struct Message: NotificationCenter.AsyncMessage {
  typealias Subject = Sender
  static var name: Notification.Name { Notification.Name("message") }
}

final class Sender: Sendable {}

/// N asynchronous observers of a message, from `post` until the last has been called.
func asyncMessages(count: Int) async {
  let center = NotificationCenter()
  let sender = Sender()
  let arrivals = Arrivals(count: count)
  let tokens = (0..<count).map { _ in
    center.addObserver(of: sender, for: Message.self) { _ in arrivals.arrive() }
  }
  await report(count: count) {
    await withCheckedContinuation { caller in
      arrivals.await(caller)
      center.post(Message(), subject: sender)
    }
  }
  for token in tokens { center.removeObserver(token) }
}

/// Resumes a caller when all have arrived.
final class Arrivals: Sendable {
  private let count: Int
  private let missing = Atomic<Int>(0)
  private let caller = Mutex<CheckedContinuation<Void, Never>?>(nil)

  init(count: Int) { self.count = count }

  @inline(never) func await(_ continuation: CheckedContinuation<Void, Never>) {
    caller.withLock { $0 = continuation }
    missing.store(count, ordering: .releasing)
  }

  @inline(never) func arrive() {
    guard missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    caller.withLock { $0.take() }?.resume()
  }
}

/// Adding to, and removing from, a notification centre that has N blocks.
func registryOfBlocks(count: Int) async {
  let center = NotificationCenter()
  let name = Notification.Name("ping")
  let add = { center.addObserver(forName: name, object: nil, queue: nil) { _ in } }
  let tokens = (0..<count).map { _ in add() }
  let guests = min(count, 1000)
  var adding: [Double] = []
  var removing: [Double] = []
  for _ in 0..<max(15, 1000 / guests) {
    var own: [any NSObjectProtocol] = []
    adding.append(timed(guests) { for _ in 0..<guests { own.append(add()) } })
    own.shuffle()
    removing.append(timed(guests) { for token in own { center.removeObserver(token) } })
  }
  say("add", median(adding))
  say("remove", median(removing))
  for token in tokens { center.removeObserver(token) }
}

/// In nanoseconds for one of `count`.
func timed(_ count: Int, _ body: () -> Void) -> Double {
  let began = bench_now()
  body()
  return Double(bench_now() - began) / Double(count)
}
