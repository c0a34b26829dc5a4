// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// One `AsyncStream` of notifications or reports, for which delivery never waits.
struct StreamSubscriber: Sendable {
  let id: UInt64
  /// The type of the elements: a notification's, or `LifecycleReport`.
  let element: ObjectIdentifier
  /// Yields a notification or a report. Returns the element that was dropped for it.
  let yield: @Sendable (any Sendable) -> (any Sendable)?
  let finish: @Sendable () -> Void
}

extension LifecycleCore {
  func stream<Element: Sendable>(
    of type: Element.Type, bufferingNewest count: Int
  ) -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: type, bufferingPolicy: .bufferingNewest(count))
    let id: UInt64? = state.withLock { state in
      guard state.machine.stop.exit == nil, !state.machine.isClosed else { return nil }
      let id = state.newID()
      state.streams.append(
        StreamSubscriber(
          id: id, element: ObjectIdentifier(type),
          yield: {
            guard let element = $0 as? Element,
              case .dropped(let old) = continuation.yield(element)
            else { return nil }
            return old
          },
          finish: { continuation.finish() }))
      state.effects.announces = true
      return id
    }
    guard let id else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      // Released outside of the lock.
      _ = self?.state.withLock { state in
        defer { state.effects.announces = self?.harness != nil || !state.streams.isEmpty }
        return state.streams.firstIndex { $0.id == id }.map { state.streams.remove(at: $0) }
      }
    }
    return stream
  }
}
