import CLinux

/// Pressure as an asynchronous sequence, for those without an event loop of their own.
extension PressureMonitor {
  /// Opens what ``PressureWatch/resolve(for:variables:fallback:)`` finds, and gives the resource each time that
  /// there is pressure.
  ///
  ///     for await _ in try PressureMonitor.pressureEvents(for: .memory, variables: variables) {
  ///       cache.removeAll()
  ///     }
  ///
  /// It ends when the control group or the peer is gone, and is empty when the service manager has switched
  /// watching off or nothing is to be watched. Pressure that comes while nobody waits is said once. One thread
  /// waits for it, on which no signal lands; it ends with the sequence. Throws as `resolve` and
  /// ``init(_:)`` do, and ``SystemdError/system(_:errno:)`` without a thread to be had.
  public static func pressureEvents(
    for resource: PressureResource, variables: [String: String],
    fallback: PressureTrigger? = .standard
  ) throws(SystemdError) -> AsyncStream<PressureResource> {
    let watch = try PressureWatch.resolve(
      for: resource, variables: variables, fallback: fallback)
    guard let watch, !watch.isOff else { return AsyncStream { $0.finish() } }
    return try PressureMonitor(watch).events(resource)
  }

  /// Gives `element` each time that there is pressure. The stream's thread is the only one that may `consume`.
  public func events<Element: Sendable>(
    _ element: Element
  ) throws(SystemdError) -> AsyncStream<Element> {
    let ending = try Ending()
    let (stream, continuation) = AsyncStream.makeStream(
      of: Element.self, bufferingPolicy: .bufferingNewest(1))
    continuation.onTermination = { _ in ending.signal() }
    let body = Body {
      while self.waitForPressure(or: ending) { continuation.yield(element) }
      continuation.finish()
    }
    let failure = clinux_start_quiet_thread(
      "pressure",
      { raw in
        // The pointer is the one retained below; it is released exactly once, here.
        guard let raw else { return }
        Unmanaged<Body>.fromOpaque(raw).takeRetainedValue().run()
      },
      Unmanaged.passRetained(body).toOpaque())
    if failure != 0 {
      // No thread takes over what the line above has retained.
      Unmanaged.passUnretained(body).release()
      throw .system("start the thread that waits for pressure", errno: failure)
    }
    return stream
  }

  /// False when there will be none any more, or nobody wants to know.
  private func waitForPressure(or ending: Ending) -> Bool {
    var descriptors = [
      pollfd(fd: fileDescriptor, events: Int16(truncatingIfNeeded: pollEvents), revents: 0),
      pollfd(fd: ending.descriptor.rawValue, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = poll(&descriptors, 2, -1)
      guard count > 0 else {
        if clinux_errno() == EINTR { continue }
        return false
      }
      if descriptors[1].revents != 0 { return false }
      switch consume() {
      case .pressure: return true
      case .quiet: continue
      case .gone: return false
      }
    }
  }

  /// What tells the thread that nobody listens any more.
  private final class Ending: Sendable {
    let descriptor: OwnedDescriptor

    init() throws(SystemdError) {
      let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
      guard number >= 0 else {
        throw .system("create an eventfd for the pressure thread", errno: clinux_errno())
      }
      descriptor = OwnedDescriptor(owning: number)
    }

    func signal() {
      var one: UInt64 = 1
      _ = write(descriptor.rawValue, &one, 8)
    }
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
