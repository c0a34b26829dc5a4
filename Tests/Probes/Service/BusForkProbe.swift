import DaemonSystemd
import Glibc
import Synchronization

/// Connects to the bus at an address, forks, and says how the child's use of its copy ended and what a call of the
/// parent's is answered after that. One thread does it all: what a child of several threads may touch is Swift's to say.
func forkBesideABus(_ address: String) {
  let session = BusSession(.address(address))
  let kept = Latest<BusConnection>()
  session.start()
  session.perform { kept.set(try? $0.get()) }
  turn(session) { kept.get() != nil }

  let child = forkThePlainWay()
  if child == 0 { useTheCopy(session, kept.get()!) }
  var status: Int32 = -1
  while waitpid(child, &status, 0) == -1, errno == EINTR {}
  say("child \(status)")

  let delay = Latest<Duration>()
  Login1(session).inhibitDelayMax { delay.set(try? $0.get()) }
  turn(session) { delay.get() != nil }
  say("answer \(delay.get()!)")
  kept.set(nil)
  session.close()
}

/// In the child: each use is refused, and nothing of the parent's is touched.
private func useTheCopy(_ session: BusSession, _ connection: BusConnection) -> Never {
  alarm(60)  // what hangs must end, and be seen to
  let refused = Mutex(0)
  connection.call(BusObject.bus.method("GetId")) {
    if case .failure(.afterFork) = $0 { refused.withLock { $0 += 1 } }
  }
  session.perform {
    if case .failure(.afterFork) = $0 { refused.withLock { $0 += 1 } }
  }
  session.process()
  session.close()
  _exit(refused.withLock { $0 } == 2 ? 0 : 1)
}

private func turn(_ session: BusSession, until condition: () -> Bool) {
  while !condition() {
    var ready = pollfd(fd: session.fileDescriptor, events: Int16(POLLIN), revents: 0)
    _ = poll(&ready, 1, -1)
    session.process()
  }
}

/// fork(2) is hidden from Swift.
private func forkThePlainWay() -> pid_t {
  let symbol = dlsym(nil, "fork")!
  typealias Fork = @convention(c) () -> pid_t
  return unsafeBitCast(symbol, to: Fork.self)()
}

/// Only the one thread of this process touches it.
private final class Latest<Value>: @unchecked Sendable {
  private var value: Value?
  func set(_ value: Value?) { self.value = value }
  func get() -> Value? { value }
}
