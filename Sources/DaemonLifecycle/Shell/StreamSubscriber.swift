// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// One `AsyncStream` of notifications or reports, for which delivery never waits.
struct StreamSubscriber: Sendable {
  enum Subject: Hashable, Sendable {
    case notifications(ObjectIdentifier)
    case reports
  }

  let subject: Subject
  /// Yields a notification or a report.
  let yield: @Sendable (any Sendable) -> Void
  let finish: @Sendable () -> Void
}

extension LifecycleCore {
  func stream<Element: Sendable>(
    of subject: StreamSubscriber.Subject, bufferingNewest count: Int, as _: Element.Type
  ) -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Element.self, bufferingPolicy: .bufferingNewest(count))
    let id: UInt64? = state.withLock { state in
      guard state.machine.stop.exit == nil, !state.machine.isClosed else { return nil }
      let id = state.newID()
      state.streams[id] = StreamSubscriber(
        subject: subject,
        yield: { if let element = $0 as? Element { continuation.yield(element) } },
        finish: { continuation.finish() })
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
        defer { state.effects.announces = self?.recorder != nil || !state.streams.isEmpty }
        return state.streams.removeValue(forKey: id)
      }
    }
    return stream
  }
}
