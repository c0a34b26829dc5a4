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
    try await eventually { mock.postWasCalled }
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
}
