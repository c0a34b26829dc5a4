// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What a start and a stop do without.
@Suite struct StartTests {
  private enum Outer {
    struct Nested {}
    final class Box<Element> { struct Inner {} }
  }
  private struct Secret {}

  /// The text of String(describing:), which takes ten times as long.
  @Test func theNameOfAType() {
    struct Local {}
    let types: [any Any.Type] = [
      Int.self, Outer.Nested.self, Outer.Box<Int>.self, Outer.Box<Outer.Nested>.Inner.self,
      Secret.self, Local.self, Outer.Box<Secret>.self, [String: Int?].self, (Int, String).self,
      (any Sendable).self, (() -> Void).self, ((any Error)?).self, Int.Type.self, Never.self,
      Listener.self, ShouldSaveState.self,
    ]
    for type in types {
      #expect(String(nameOf: type) == String(describing: type))
      #expect(ObserverName.type(type).description == String(describing: type))
    }
  }

  /// No thread is needed, and so none is woken, for a launch without hooks.
  @Test func aLaunchWithoutHooksStaysOnItsThread() async throws {
    let core = LifecycleCore(
      configuration: .init(), executor: HookExecutor(startThread: { _, _ in false }))
    let isLaunched = Atomic<Bool>(false)
    let launch = Task {
      _ = await core.launch()
      isLaunched.store(true, ordering: .relaxed)
    }
    try await eventually { isLaunched.load(ordering: .relaxed) }
    #expect(core.lifecycleState == .foreground)
    core.close()
    await launch.value
  }

  /// Whatever it waits for.
  @Test func aSetUpThatTakesLongIsSaid() async throws {
    let observed = ObservedCore()
    let gate = Gate()
    let core = observed.core
    let run = Task { try await core.run(after: SetUpBody { await gate.wait() }) }
    try await eventually { core.sleeperCount == 1 }
    await core.advance(by: .milliseconds(4999))
    #expect(observed.log.names == [])
    await core.advance(by: .milliseconds(1))
    #expect(observed.log.names == ["setting up for 5 s"])
    gate.open()
    try await eventually { observed.log.names.contains("launched") }
    #expect(core.sleeperCount == 0)
    core.receive(LifecycleEvent(.terminate))
    _ = try await run.value
  }

  /// Tests make hundreds of mocks beside each other.
  @Test func aMockHasNoDescriptors() async throws {
    let mock = MockLifecycleSubject()
    mock.addObserver(Listener("a", Log()))
    try await mock.send(.sigusr1)
    try await mock.send(.sigterm)
    #expect(mock.core.executor.poll.waker.descriptor == -1)
  }
}
