// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Glibc
import Synchronization

/// Connects to the bus at an address, forks, and says how the child's use of its copy ended and what a question of the
/// parent's is answered after that. One thread does it all: what a child of several threads may touch is Swift's to say.
func forkBesideABus(_ address: String) {
  let session = BusSession(.address(address))
  let delays = Mutex<[Duration]>([])
  let question = session.follow(.delayLimit) { answer in
    if case .success(let answer) = answer, let delay = answer.duration {
      delays.withLock { $0.append(delay) }
    }
    return true
  }
  session.start()
  turn(session) { delays.withLock { $0.count == 1 } }

  let child = forkThePlainWay()
  if child == 0 { useTheCopy(session, question) }
  var status: Int32 = -1
  while waitpid(child, &status, 0) == -1, errno == EINTR {}
  say("child \(status)")

  session.ask(question)
  turn(session) { delays.withLock { $0.count == 2 } }
  say("answer \(delays.withLock { $0[1] })")
  session.close()
}

/// In the child: nothing happens, and nothing of the parent's is touched.
private func useTheCopy(_ session: BusSession, _ question: BusSession.Item) -> Never {
  alarm(60)  // what hangs must end, and be seen to
  session.ask(question)
  session.process()
  var ready = pollfd(fd: session.fileDescriptor, events: Int16(POLLIN), revents: 0)
  let isWoken = poll(&ready, 1, 0) == 1
  session.close()
  _exit(isWoken ? 1 : 0)
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
