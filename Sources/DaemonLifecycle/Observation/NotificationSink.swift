/// One `AsyncStream` of notifications: a view that delivery never waits for.
struct NotificationSink: Sendable {
  /// `nil`: every type.
  let type: ObjectIdentifier?
  let yield: @Sendable (any LifecycleNotification) -> Void
  let finish: @Sendable () -> Void
}

extension LifecycleCore {
  func stream<Element: Sendable>(
    of type: (any LifecycleNotification.Type)?, bufferingNewest count: Int,
    _ element: @escaping @Sendable (any LifecycleNotification) -> Element?
  ) -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Element.self, bufferingPolicy: .bufferingNewest(count))
    let id: UInt64? = change { state, _ in
      guard state.exit == nil else { return nil }
      let id = state.newID()
      state.streams[id] = NotificationSink(
        type: type.map { ObjectIdentifier($0) },
        yield: { if let element = element($0) { continuation.yield(element) } },
        finish: { continuation.finish() })
      return id
    }
    guard let id else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.change { state, _ in _ = state.streams.removeValue(forKey: id) }
    }
    return stream
  }

  func reports(bufferingNewest count: Int) -> AsyncStream<LifecycleReport> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: LifecycleReport.self, bufferingPolicy: .bufferingNewest(count))
    let id: UInt64? = change { state, _ in
      guard state.exit == nil else { return nil }
      let id = state.newID()
      state.reportStreams[id] = continuation
      return id
    }
    guard let id else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.change { state, _ in _ = state.reportStreams.removeValue(forKey: id) }
    }
    return stream
  }
}
