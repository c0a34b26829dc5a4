// SPDX-License-Identifier: Apache-2.0
import CLinux
import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What the kernel vouches for of a signal's sender, and what it does not.
@Suite struct SignalSenderTests {
  /// In a process of its own, which may be sent what it likes.
  @Test(.timeLimit(.minutes(5))) func onlyTheKernelsWordIsTheSender() async {
    await #expect(processExitsWith: .success) {
      let signal = UnixSignal.realTime(5)!
      let source = SignalSource(map: [signal: .saveState, .sigalrm: .reload])
      try source.open()
      let us = (pid: getpid(), uid: getuid())

      kill(us.pid, signal.rawValue)
      guard Self.sender(source) == .process(pid: us.pid, uid: us.uid) else { exit(10) }
      pthread_kill(pthread_self(), signal.rawValue)  // SI_TKILL
      guard Self.sender(source) == .process(pid: us.pid, uid: us.uid) else { exit(11) }
      sigqueue(us.pid, signal.rawValue, sigval())
      guard Self.sender(source) == .queued(claimedPID: us.pid, claimedUID: us.uid) else { exit(12) }
      alarm(1)
      guard Self.sender(source) == .kernel else { exit(13) }
      source.close()
    }
  }

  /// Two signals that Dispatch has are settled by a thread each: the last note is that of both, whichever is slower.
  @Test(.timeLimit(.minutes(5))) func theLastNoteIsThatOfAll() async {
    await #expect(processExitsWith: .success) {
      let signals = [UnixSignal.realTime(5)!, .realTime(6)!]
      let theirs = signals.map { DispatchSource.makeSignalSource(signal: $0.rawValue) }
      let registered = DispatchSemaphore(value: 0)
      for other in theirs {
        other.setRegistrationHandler { registered.signal() }
        other.activate()
        registered.wait()
      }
      struct Notes {
        var all: [String] = []
        var isHeld = false
        var isOver = false
      }
      let notes = Mutex(Notes())
      let source = SignalSource(
        map: [signals[0]: .reload, signals[1]: .reload],
        report: { input in
          guard case .fact(.statusNote(_, let note?)) = input else { return }
          let isFirst = notes.withLock { notes in
            defer { notes.isHeld = true }
            return !notes.isHeld
          }
          while isFirst, notes.withLock(\.all.isEmpty) { usleep(1_000) }
          notes.withLock {
            $0.all.append(note)
            if isFirst { $0.isOver = true }
          }
        })
      try source.open()
      source.resolveConflicts()
      try eventually {
        notes.withLock { notes in
          notes.isOver && signals.allSatisfy { notes.all.last?.contains("\($0)") == true }
        }
      }
      withExtendedLifetime(theirs) { _ = source.close() }
    }
  }

  /// Of the next signal; whoever takes it, the handler or the descriptor.
  private static func sender(_ source: SignalSource) -> LifecycleCause.Sender? {
    while true {
      for descriptor in source.descriptors {
        for case .event(let event) in source.inputs(descriptor) {
          if case .signal(_, let sender, _) = event.cause.origin { return sender }
        }
      }
      sched_yield()
    }
  }

  @Test func aClaimIsNoSender() {
    let queued = LifecycleCause(
      .signal(.sigterm, from: .queued(claimedPID: 1, claimedUID: 0), coalesced: 2))
    #expect("\(queued)" == "SIGTERM queued, claims pid 1 uid 0 (2 times)")
    #expect(queued.signal == .sigterm)
    #expect("\(LifecycleCause.Sender.queued(claimedPID: nil, claimedUID: nil))" == "queued")
    let byHand = LifecycleCause(.signal(.sigint, pid: 0, uid: 0))
    #expect("\(byHand)" == "Ctrl-C")
  }
}

extension SignalSource {
  func inputs(_ ready: PolledDescriptor) -> [SourceInput] {
    var inputs: [SourceInput] = []
    read(ready) { inputs.append($0) }
    return inputs
  }
}
