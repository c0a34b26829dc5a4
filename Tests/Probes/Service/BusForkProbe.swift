// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Glibc
import Synchronization

/// Connects to the bus at an address, forks, and prints how the child's use of its copy ended and whether a query of
/// the parent's is answered after that. One thread does it all: Swift decides what a child of several may touch.
func forkBesideABus(_ address: String) throws {
  let answers = Mutex(0)
  let request = BusRequest(
    .systemd, isOnDemand: true, query: { .get("A", of: "/a", "B", .systemd) },
    reply: { reply, _ in
      if case .variant(.uint64(5))? = (try? reply.get())?.only { answers.withLock { $0 += 1 } }
      return .done
    }, failure: { _ in })
  let connection = BusConnection(.address(address), [request])
  try connection.start()
  connection.sendOnDemand()
  turn(connection) { answers.withLock { $0 == 1 } }

  let child = forkThePlainWay()
  if child == 0 { useTheCopy(connection) }
  var status: Int32 = -1
  while waitpid(child, &status, 0) == -1, errno == EINTR {}
  say("child \(status)")

  connection.sendOnDemand()
  turn(connection) { answers.withLock { $0 == 2 } }
  say("answered")
  connection.close()
}

/// In the child: nothing happens, and nothing of the parent's is touched.
private func useTheCopy(_ connection: BusConnection) -> Never {
  alarm(60)  // what hangs must end, and be noticed
  connection.sendOnDemand()
  connection.process()
  var ready = pollfd(fd: connection.fileDescriptor, events: Int16(POLLIN), revents: 0)
  let isWoken = poll(&ready, 1, 0) == 1
  connection.close()
  _exit(isWoken ? 1 : 0)
}

private func turn(_ connection: BusConnection, until condition: () -> Bool) {
  while !condition() {
    var ready = pollfd(fd: connection.fileDescriptor, events: Int16(POLLIN), revents: 0)
    _ = poll(&ready, 1, -1)
    connection.process()
  }
}

/// fork(2) is hidden from Swift.
private func forkThePlainWay() -> pid_t {
  let symbol = dlsym(nil, "fork")!
  typealias Fork = @convention(c) () -> pid_t
  return unsafeBitCast(symbol, to: Fork.self)()
}
