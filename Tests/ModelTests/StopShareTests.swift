// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// How a stop of 30 s, 6 of them for the save, is shared by what has to end in it.
@Suite struct StopShareTests {
  private let daemon = DaemonUnderTest(
    LifecycleConfiguration(
      hookTimeout: .seconds(60), stopTimeout: .seconds(30), saveReserve: .seconds(6),
      exitGrace: .zero))

  /// When a call must be over, its grace included.
  private func end(of call: CallID?) throws -> MonotonicTime {
    let call = try #require(daemon.call(call))
    return call.deadline.advanced(by: call.grace)
  }

  /// While it runs: the save after it has all that is left.
  @Test func theBodyCountsBesideThePauses() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    daemon.give(.bodyBegan)
    let pause = daemon.request(.terminate).starts.first
    #expect(try end(of: pause) == at(12))
    daemon.give(.ended(try #require(pause), .completed))
    let save = daemon.give(.bodyEnded(nil)).starts.first
    #expect(try end(of: save) == at(30))
  }

  /// It shares its time with what the stop is to call before it is over: two pauses, and another save.
  @Test func aSaveThatTheStopFindsUnderWay() throws {
    for _ in 1...2 { daemon.add([DidEnterBackground.self]) }
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.request(.terminate)
    #expect(try end(of: save) == at(0).advanced(by: .milliseconds(7500)))
  }

  /// It would have a third of all, and its reserve is half of that: the pause has a half of the other.
  @Test func aSaveUnderWayLeavesThePausesTheirPart() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.give(.stopTimeout(.seconds(13)))
    daemon.request(.terminate)
    #expect(try end(of: save) == at(3))
  }

  /// Nobody is paused any more.
  @Test func aSecondSignalLeavesASaveUnderWayItsPart() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.signal()
    daemon.signal(at: 2)
    #expect(try end(of: save) == at(4))
  }

  @Test func aSecondSignalLeavesASaveItsReserve() throws {
    daemon.add([ShouldSaveState.self])
    let save = daemon.signal().starts.first
    daemon.signal(at: 2)
    #expect(try end(of: save) == at(8))
  }

  // MARK: What is said meanwhile

  @Test func aPauseIsRevokedByAResume() {
    var isRevoked: Bool? {
      daemon.machine.transition.map { daemon.machine.progress(of: $0).isRevoked }
    }
    daemon.add([DidEnterBackground.self])
    daemon.request(.pause)
    #expect(isRevoked == false)
    daemon.request(.resume)
    #expect(isRevoked == true)
  }

  /// Though it is less than a second after the last.
  @Test func theEndOfATransitionShowsTheDaemonsStatus() {
    func shown(_ output: DaemonUnderTest.Output) -> [String?] {
      output.facts.compactMap { if case .statusNote(.daemon, let text) = $0 { text } else { nil } }
    }
    #expect(shown(daemon.give(.status("a"))) == ["a"])
    #expect(shown(daemon.give(.status("b"))) == [])
    #expect(shown(daemon.request(.reload)) == ["b"])
  }
}
