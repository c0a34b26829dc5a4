// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

struct Job: Sendable {
  let id: String
  let payload: String
}

/// A connection to the queue, which one task uses.
protocol JobStore: Sendable {
  typealias Work = @Sendable (Job) async throws -> String

  func open(_ connectionString: String) async throws

  /// Takes the next job, which no one else can while `work` runs, and stores the result; false when none waits.
  ///
  /// It throws `JobFailure` when the job's failure has been counted. After any other error, cancellation included, the
  /// connection is of no more use.
  func withNextJob(_ work: @escaping Work) async throws -> Bool

  /// Ends the connection, which hands back the job that has been taken and is not done.
  func close() async
}

struct JobFailure: Error, CustomStringConvertible {
  let job: Job
  let error: any Error
  var description: String { "Job \(job.id) failed: \(error)" }
}

/// Does jobs, one after the other, in the foreground. The lifecycle is used here.
actor Worker: ReloadObserver {
  private let settings: Settings
  private var connectionString: String
  private let makeStore: @Sendable () -> any JobStore
  private let perform: JobStore.Work
  private let say: @Sendable (String) -> Void
  private var done = 0

  init(
    _ settings: Settings, makeStore: @escaping @Sendable () -> any JobStore,
    perform: @escaping JobStore.Work, say: @escaping @Sendable (String) -> Void
  ) throws {
    (self.settings, self.makeStore, self.perform, self.say) = (settings, makeStore, perform, say)
    connectionString = try settings.connectionString()
  }

  /// The next job is taken from the database that the file names now.
  func shouldReload(_ notification: ShouldReload) throws {
    connectionString = try settings.connectionString()
  }

  /// Adds the work. Nothing that the database does ends the daemon: it tries again after at most 5 s. A pause or a stop
  /// waits for the job in hand, which has 2 s to end, and for its return to the queue.
  nonisolated func work(in lifecycle: any LifecycleObservable) {
    lifecycle.addObserver(self)
    lifecycle.addForeground(
      name: "jobs", draining: .seconds(8),
      restarting: .backoff(maximumDelay: .seconds(5), maximumFailures: nil)
    ) { round in
      try await self.work(round, in: lifecycle)
    }
  }

  private func work(_ round: WorkRound, in lifecycle: any LifecycleObservable) async throws {
    while !round.isEnding {
      let store = makeStore()
      do {
        try await doJobs(of: store, round, lifecycle)
        await store.close()
      } catch {
        await store.close()
        // The pause has cut the job off, or the connection was lost at that moment: the job is handed back.
        if !round.isEnding { throw error }
      }
    }
  }

  /// Returns at the end of the round, or of the connection string.
  private func doJobs(
    of store: any JobStore, _ round: WorkRound, _ lifecycle: any LifecycleObservable
  ) async throws {
    let current = connectionString
    guard try await round.untilEnding({ try await store.open(current) }) != nil else { return }
    say("connected")
    while !round.isEnding, connectionString == current {
      lifecycle.statusText = "jobs done: \(done)"
      if try await doNextJob(of: store, round) { continue }
      _ = try await round.untilEnding { try await lifecycle.clock.sleep(for: .seconds(1)) }
    }
  }

  /// Returns whether there was a job.
  private func doNextJob(of store: any JobStore, _ round: WorkRound) async throws -> Bool {
    let before = done
    do {
      let isDone = try await round.finish(within: .seconds(2)) { [perform, say] in
        let wasFound = try await store.withNextJob { job in
          do { return try await perform(job) } catch let error where Task.isCancelled {
            say("Job \(job.id) is handed back: it would have taken too long.")
            throw error
          }
        }
        if wasFound { await self.countJob() }
      }
      return isDone && done > before
    } catch let failure as JobFailure {
      say("\(failure)")
      return true
    }
  }

  private func countJob() { done += 1 }
}
