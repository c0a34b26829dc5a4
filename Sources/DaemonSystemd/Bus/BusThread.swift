import CLinux

/// A thread that does nothing but serve one session: poll(2), then `process`, until the session is closed.
enum BusThread {
  /// False when the system has no thread left to give (pthread_create(3) failed).
  static func serve(_ session: BusSession) -> Bool {
    // Every signal is blocked from the thread's first instruction on, for it inherits the mask: it takes
    // none of the daemon's signals. No code of users runs on it, so no child gets this mask.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    var thread = pthread_t()
    let context = Unmanaged.passRetained(session)
    let failure = pthread_create(
      &thread, &attributes,
      { raw in
        guard let raw else { return nil }
        clinux_name_this_thread("bus")
        // The reference retained above is taken over here, exactly once.
        BusThread.loop(Unmanaged<BusSession>.fromOpaque(raw).takeRetainedValue())
        return nil
      }, context.toOpaque())
    if failure != 0 { context.release() }
    return failure == 0
  }

  private static func loop(_ session: BusSession) {
    while !session.isClosed {
      // Without a descriptor there is no bus, and no wake-up either: requests are refused a little late.
      let descriptor = session.fileDescriptor
      var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      _ = poll(&ready, 1, descriptor < 0 ? 100 : -1)
      session.process()
    }
  }
}
