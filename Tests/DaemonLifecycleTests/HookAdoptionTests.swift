// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

// Every way in which a type can come to have a hook.

// In a subclass: of this module's class, and of another's, which was given a hook here.
// Unchecked: it has no state.
private class Base: NotingObserver, LaunchObserver, @unchecked Sendable {
  let received = ReceivedHooks()
  func didFinishLaunching(_ notification: DidFinishLaunching) { received.add(notification) }
}
private class Derived: Base, SaveObserver, @unchecked Sendable {
  func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
private final class Last: Derived, TerminationObserver, @unchecked Sendable {
  func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}
private final class DerivedFromForeign: ForeignClass, TerminationObserver, @unchecked Sendable {
  func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}
/// Has no hook; its subclass has one.
private class Bare: NotingObserver, @unchecked Sendable { let received = ReceivedHooks() }
private final class DerivedFromBare: Bare, TerminationObserver, @unchecked Sendable {
  func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}

// Apart from the type, and by way of a protocol that is no hook's.
private final class Split: NotingObserver { let received = ReceivedHooks() }
extension Split: LaunchObserver {
  func didFinishLaunching(_ notification: DidFinishLaunching) { received.add(notification) }
}
extension Split: SaveObserver {
  func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
private protocol Saver: NotingObserver, SaveObserver, TerminationObserver {}
extension Saver {
  func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
  func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}
private actor SavingActor: Saver { let received = ReceivedHooks() }
@MainActor private final class SavingView: Saver { let received = ReceivedHooks() }

private struct Opaque {}

@Suite struct HookAdoptionTests {
  private static let launchAndSave = ["DidFinishLaunching", "ShouldSaveState"]
  private static let saveAndTermination = ["ShouldSaveState", "WillTerminate"]

  /// One of each type, whose static type says nothing; and what it receives.
  private static let observers: [(any NotingObserver, [String])] = [
    // Given a hook by another module, which is this one; or made an observer by it, or given all of them.
    (ForeignClass(), launchAndSave), (ForeignActor(), launchAndSave),
    (ForeignStranger(), ["WillTerminate"]),
    (ForeignObserver(), NotificationKind.allCases.map { "\($0.row.type)" }),
    // For some types only.
    (ForeignBox<Int>(), launchAndSave), (ForeignBox<Opaque>(), ["DidFinishLaunching"]),
    // In a subclass.
    (Base(), ["DidFinishLaunching"]), (Derived(), launchAndSave),
    (Last(), launchAndSave + ["WillTerminate"]),
    (DerivedFromForeign(), launchAndSave + ["WillTerminate"]),
    (DerivedFromBare(), ["WillTerminate"]),
    // In an extension, or a protocol of the user's.
    (Split(), launchAndSave), (SavingActor(), saveAndTermination),
    (SavingView(), saveAndTermination),
  ]

  /// In a life that has a save, a reload, a sleep and everything else that has a hook.
  @Test(arguments: observers)
  func itReceivesWhatItHasHooksFor(observer: any NotingObserver, names: [String]) async throws {
    let mock = MockLifecycleSubject(state: .launching)
    mock.addObserver(observer)
    try await mock.launch()
    let requests: [LifecycleRequest] = [
      .sleep, .wakeUp, .reload, .pressure, .checkHealth, .terminate,
    ]
    for request in requests { try await mock.send(request) }
    #expect(mock.exitResult?.exitStatus == 0)
    #expect(Set(observer.received.all) == Set(names))
  }

  /// Only its own methods are called in an actor's isolation, and a class's anywhere.
  @Test func aHookKnowsTheActorThatItIsIsolatedTo() {
    func isIsolated(_ type: any LifecycleObserver.Type) -> Bool? {
      Hook.search(type, for: .shouldSaveState).map { $0.asActor != nil }
    }
    #expect(isIsolated(SavingActor.self) == true && isIsolated(ForeignActor.self) == true)
    #expect(isIsolated(Split.self) == false && isIsolated(SavingView.self) == false)
    #expect(isIsolated(Base.self) == nil)
  }

  @Test func aTypeIsSearchedOnce() {
    let found = TypeHooks.of(Base.self)
    #expect(found.receives == [ObjectIdentifier(DidFinishLaunching.self)])
    #expect(TypeHooks.of(Base.self) === found)
    #expect(TypeHooks.of(Bare.self).receives == [ObjectIdentifier(DidFinishLaunching.self)])
  }

  @Test func onlyAnObserverWithoutAnyHookIsAnError() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    mock.addObserver(Bare())
    let report = try await mock.launch()
    #expect(report.problems.map(\.failure?.text) == ["\(LifecycleError.noHook("Bare"))"])
    let text = try #require(report.problems.first?.failure?.text)
    for kind in NotificationKind.allCases.map({ "\($0)" }) {
      let name = kind.replacing(#/^(did|will|should|check)(Enter|Receive|Finish)?/#, with: "")
      let hook = ["Launching": "Launch", "SaveState": "Save", "Terminate": "Termination"][name]
      #expect(text.contains("\(hook ?? name)Observer"), "\(kind)")
    }
  }
}
