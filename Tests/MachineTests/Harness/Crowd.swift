// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Lets a few tests in at a time: all at once would only wait for each other on a machine of two cores.
enum Crowd {
  private struct State {
    var free = 4
    /// First come, first served; not empty only while nothing is free.
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private static let state = Mutex(State())

  static func enter<T>(_ body: () async throws -> T) async rethrows -> T {
    await withCheckedContinuation { continuation in
      let mayEnter = state.withLock { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if mayEnter { continuation.resume() }
    }
    defer { leave() }
    return try await body()
  }

  private static func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
