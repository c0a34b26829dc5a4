// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import Glibc
import Synchronization

/// A heartbeat, a migration, a consumer of a stream that was made once, a server that fails when it is told to reload, and
/// a worker that stalls then, and is not ready while there is a file. The first argument is a file whose changes reload.
let works: @Sendable ([String]) async throws -> Void = { arguments in
  struct AddressLost: Error {}
  var configuration = LifecycleConfiguration(logging: .all)
  configuration.interfaces.append(.reloading(whenChanged: arguments[0]))
  configuration.interfaces.append(.readinessFile(arguments[0] + ".ready"))
  let lifecycle = loggedSubject(configuration)
  let reloads = Atomic(0)
  let token = lifecycle.observe(ShouldReload.self) { _ in reloads.add(1, ordering: .relaxed) }
  lifecycle.addTask(name: "heartbeats", draining: .seconds(5)) { round in
    while try await round.untilEnding({ try await lifecycle.clock.sleep(for: .milliseconds(100)) })
      != nil
    {
      let (isReady, isHealthy) = (lifecycle.isReady, lifecycle.isHealthy)
      say("beat in \(lifecycle.state), ready: \(isReady)\(isHealthy ? "" : ", not healthy")")
    }
    say("heartbeats end")
  }
  lifecycle.addForeground(name: "migration", mayReturn: true) { round in
    await round.keepingAwake(because: "migrates") { say("migrated") }
  }
  let (numbers, continuation) = AsyncStream<Int>.makeStream()
  lifecycle.addForeground(name: "consumer") { for await _ in numbers {} }
  lifecycle.addForeground(
    name: "server", restarting: .backoff(initialDelay: .seconds(1)), readyWithin: .seconds(10)
  ) { round in
    let known = reloads.load(ordering: .relaxed)
    round.reportReady()
    for try await _ in lifecycle.ticks(every: .milliseconds(20))
    where reloads.load(ordering: .relaxed) > known { throw AddressLost() }
  }
  lifecycle.addForeground(name: "worker", stallsAfter: .seconds(2)) { round in
    while true {
      if reloads.load(ordering: .relaxed) != 1 { round.reportProgress() }
      if access(arguments[0] + ".down", F_OK) == 0 {
        round.reportNotReady(because: "the database is down")
      } else {
        round.reportReady()
      }
      try await lifecycle.clock.sleep(for: .milliseconds(20))
    }
  }
  withExtendedLifetime(continuation) {}
  try await lifecycle.runToTheEnd(token)
}
