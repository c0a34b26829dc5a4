import Foundation
import Synchronization

/// The thread that the loop is an actor on, and nobody else: Swift's pool is not for waiting in poll(2).
///
/// It does what is asked of the loop, waits for sockets, and lets the loop see to them, until the loop is gone.
final class LoopThread: SerialExecutor {
  /// Readable while something is asked, or the loop is gone; and the other end.
  let wake, waker: Int32
  private let jobs = Mutex<[UnownedJob]>([])
  /// On the thread: itself.
  @TaskLocal private static var current: LoopThread?

  init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemError("make a pipe") }
    for end in ends { Sockets.makeReady(end) }
    (wake, waker) = (ends[0], ends[1])
  }

  deinit {
    close(wake)
    close(waker)
  }

  /// - Parameter loop: Whom it is for; `nil` when it is gone.
  func start(_ loop: @escaping @Sendable () -> Loop?) {
    let thread = Thread { [self] in
      Self.$current.withValue(self) { while turn(loop) {} }
    }
    thread.name = "echod-loop"
    thread.start()
  }

  private func turn(_ loop: () -> Loop?) -> Bool {
    runJobs()
    // The loop is not held while this waits: when it goes, it ends the wait.
    guard let wait = loop()?.assumeIsolated({ $0.nextWait() }) else { return false }
    var sockets = wait.sockets
    poll(&sockets, nfds_t(sockets.count), wait.milliseconds)
    loop()?.assumeIsolated { $0.serve(sockets) }
    return true
  }

  private func runJobs() {
    // First, so that nothing is missed that is asked from now on.
    var bytes = [UInt8](repeating: 0, count: 256)
    while read(wake, &bytes, bytes.count) > 0 {}
    let asked = jobs.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in asked { job.runSynchronously(on: asUnownedSerialExecutor()) }
  }

  func endWait() { _ = write(waker, "!", 1) }  // full means that it is awake

  // MARK: SerialExecutor

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    endWait()
  }

  func checkIsolated() { precondition(Self.current === self) }
}
