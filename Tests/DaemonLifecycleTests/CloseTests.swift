// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import TestSupport
import Testing

/// A subject that goes away leaves nobody waiting.
@Suite struct CloseTests {
  private struct Note: CustomNotification {}

  @Test(.timeLimit(.minutes(1))) func whoeverPostsIsAnswered() async throws {
    let mock = MockLifecycleSubject()
    let hold = mock.holdDeliveries()
    let post = Task { await mock.post(Note()) }
    try await eventually { mock.calls.contains("post(Note())") }
    // It waits behind the hold now, or finds the subject closed.
    mock.core.shutDown()
    #expect(await post.value.entries.isEmpty)
    withExtendedLifetime(hold) {}
  }

  @Test(.timeLimit(.minutes(1))) func whoeverPostsLaterIsAnsweredToo() async throws {
    let mock = MockLifecycleSubject()
    mock.core.shutDown()
    #expect(await mock.post(Note()).entries.isEmpty)
  }

  /// A loop that ignores the error is not to take a processor.
  @Test(.timeLimit(.minutes(1))) func sleepsOfOneThatIsClosedTakeAMoment() async throws {
    let mock = MockLifecycleSubject()
    let clock = mock.clock
    mock.core.shutDown()
    let time = await ContinuousClock().measure {
      for _ in 0..<3 {
        await #expect(throws: CancellationError.self) { try await clock.sleep(for: .seconds(3600)) }
      }
    }
    #expect(time >= .milliseconds(300))
  }
}
