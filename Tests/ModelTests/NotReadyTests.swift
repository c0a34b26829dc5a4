// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonLifecycle

/// What is said of a daemon that is in the foreground without some of its observers.
@Suite struct NotReadyTests {
  private let daemon = DaemonUnderTest(state: .background)
  private let failed = LifecycleMachine.CallEnd.failed(Failure(SimulatedFailure()))

  init() { daemon.add([WillEnterForeground.self]) }

  /// Begins what an input begins, and ends it.
  private func enter(
    _ input: consuming LifecycleMachine.Input, at seconds: Int64, _ end: LifecycleMachine.CallEnd
  ) throws -> DaemonUnderTest.Output {
    let call = try #require(daemon.give(input, at: at(seconds)).starts.first)
    return daemon.give(.ended(call, end), at: at(seconds))
  }

  private func resume(_ end: LifecycleMachine.CallEnd) throws -> DaemonUnderTest.Output {
    try enter(.event(LifecycleEvent(.resume)), at: 0, end)
  }

  private func changesOfPosition(_ output: DaemonUnderTest.Output) -> Int {
    output.facts.count { if case .positionChanged = $0 { true } else { false } }
  }

  /// Whatever is tried meanwhile.
  @Test func itIsSaidOnceAndTakenBackOnce() throws {
    let first = try resume(failed)
    #expect(
      first.warnings.map { $0.hasPrefix("Not ready without Int.") } == [true])
    let retry = try enter(.clock, at: 1, failed)
    #expect(retry.warnings.isEmpty && retry.ended.map(\.report.isRetry) == [true])
    let last = try enter(.clock, at: 3, .completed)
    #expect(last.infos == ["Ready again."])
    #expect(changesOfPosition(last) == 1)
  }

  @Test func whoIsRemovedIsNotMissed() throws {
    _ = try resume(failed)
    let observer = try #require(daemon.machine.unentered.failed.first)
    #expect(daemon.give(.remove([observer])).infos == ["Ready again."])
  }

  /// Not even until its caller has gone on, and removes it. It was begun again and again.
  @Test func heldWorkWhoseCallerHasLeftIsNotMissed() throws {
    var options = WorkOptions(form: .foreground)
    options.hasCaller = true
    daemon.add(options)
    _ = try resume(failed)
    #expect(daemon.machine.unentered.held.count == 1)
    daemon.work(.callerCancelled)
    #expect(daemon.machine.unentered.held.isEmpty)
    let last = try enter(.clock, at: 1, .completed)
    #expect(last.works.isEmpty && daemon.machine.unentered.isEmpty)
  }

  /// There nobody is missed, and the next foreground begins without what was missed in the last.
  @Test func inTheBackgroundNobodyIsMissed() throws {
    _ = try resume(failed)
    daemon.request(.pause)
    #expect(daemon.machine.snapshot.unentered.isEmpty)
    daemon.request(.resume)
    #expect(daemon.machine.unentered.isEmpty)
  }

  @Test func aNewcomersCatchUpIsNoRetry() throws {
    _ = try resume(failed)
    _ = try enter(.clock, at: 1, failed)
    let call = try #require(daemon.add([WillEnterForeground.self]).starts.first)
    #expect(daemon.give(.ended(call, .completed)).ended.map(\.report.isRetry) == [false])
  }

  /// One that enters late, while a hold keeps its retry from beginning.
  @Test func whoHasEnteredIsNotTriedAgain() throws {
    let call = try #require(daemon.request(.resume).starts.first)
    for _ in 1...2 { daemon.give(.clock, at: daemon.machine.deadline) }
    daemon.give(.hold)
    // Has the list made of those to be tried again.
    daemon.request(.resume)
    daemon.give(.ended(call, .completed))
    #expect(daemon.give(.release).starts.isEmpty)
  }
}
