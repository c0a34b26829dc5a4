// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The executor of the actor `Loop`: a thread of its own, since Swift's pool is not for waiting in poll(2).
///
/// In turn it runs the loop's jobs, waits for sockets, and has the loop serve them, until the loop is gone.
final class LoopThread: SerialExecutor {
  /// A pipe that ends the wait: readable when there are jobs, or the loop is gone.
  let wake, waker: OwnedDescriptor
  private let jobs = Mutex<[UnownedJob]>([])
  /// On the thread: itself.
  @TaskLocal private static var current: LoopThread?

  init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemError("make a pipe") }
    for end in ends { Sockets.makeReady(end) }
    wake = OwnedDescriptor(owning: ends[0])
    waker = OwnedDescriptor(owning: ends[1])
  }

  /// - Parameter loop: The loop; `nil` when it is gone.
  func start(_ loop: @escaping @Sendable () -> Loop?) throws(SystemError) {
    let body = Unmanaged.passRetained(
      Body { [self] in
        Self.$current.withValue(self) { while turn(loop) {} }
      })
    let failure = withUnsafeTemporaryAllocation(of: CreatedThread.self, capacity: 1) { thread in
      pthread_create(
        thread.baseAddress!, nil,
        { body in
          pthread_detach(pthread_self())
          // The pointer is the one retained above; it is released exactly once, here.
          Unmanaged<Body>.fromOpaque(body!).takeRetainedValue().run()
          return nil
        }, body.toOpaque())
    }
    guard failure == 0 else {
      body.release()
      throw SystemError("start a thread", code: failure)
    }
  }

  /// What the thread does, which pthread_create(3) takes as a pointer.
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
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
    // First, so that no later job is missed.
    var bytes = [UInt8](repeating: 0, count: 256)
    while read(wake.rawValue, &bytes, bytes.count) > 0 {}
    let waiting = jobs.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in waiting { job.runSynchronously(on: asUnownedSerialExecutor()) }
  }

  func endWait() { _ = write(waker.rawValue, "!", 1) }  // full means that it is awake

  // MARK: SerialExecutor

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    endWait()
  }

  func checkIsolated() { precondition(Self.current === self) }
}
