// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization
import Testing

@testable import DaemonLifecycle

@Suite struct EventPollTests {
  /// Its source may close it, and it would be ready for ever.
  @Test func aDescriptorWithAnErrorIsPolledNoMore() throws {
    let (poll, ready) = (EventPoll(), EventPoll.Ready())
    try poll.open()
    var ends: [Int32] = [-1, -1]
    #expect(clinux_pipe(&ends) == 0)
    let end = OwnedDescriptor(owning: ends[0])
    poll.add(PolledDescriptor(number: end.rawValue))
    close(ends[1])
    for isPolled in [true, false] {
      poll.wait(milliseconds: 0, ready)
      #expect(ready.descriptors.contains { $0.number == end.rawValue } == isPolled)
      #expect(ready.loss == nil)
    }
  }

  /// As a file does that has the number of a signalfd by now: it is left unread.
  @Test func aSourceThatCanBeWrittenToIsLost() throws {
    let (poll, ready) = (EventPoll(), EventPoll.Ready())
    try poll.open()
    let file = OwnedDescriptor(owning: clinux_memfd("file"))
    poll.add(PolledDescriptor(number: file.rawValue))
    poll.wait(milliseconds: 0, ready)
    #expect(ready.loss?.contains("descriptor \(file.rawValue)") == true)
    #expect(!ready.descriptors.contains { $0.number == file.rawValue })
  }

  /// Its owner closes it, and the number is another file's, while a wait begins or ends.
  @Test func aDescriptorThatWasRemovedIsNoLoss() throws {
    let (poll, ready) = (EventPoll(), EventPoll.Ready())
    try poll.open()
    let isOver = Atomic(false)
    let owner = Thread.spawn(named: "owner") {
      for _ in 0..<20_000 {
        let descriptor = clinux_make_timer()
        poll.add(PolledDescriptor(number: descriptor))
        poll.remove(PolledDescriptor(number: descriptor))
        close(descriptor)
        close(clinux_memfd("file"))
      }
      isOver.store(true, ordering: .releasing)
      poll.wake()
    }
    try #require(owner)
    while !isOver.load(ordering: .acquiring) {
      poll.wait(milliseconds: -1, ready)
      try #require(ready.loss == nil)
    }
  }

  @Test func afterALossItListensAndClosesNobodyElsesFile() throws {
    let (poll, ready) = (EventPoll(), EventPoll.Ready())
    try poll.open()
    let file = OwnedDescriptor(owning: clinux_memfd("file"))
    let number = poll.waker.descriptor
    #expect(dup2(file.rawValue, number) == number)
    poll.wait(milliseconds: 0, ready)
    #expect(ready.loss?.contains("its waker") == true)
    // Opens others.
    poll.wait(milliseconds: -1, ready)
    poll.wake()
    poll.wait(milliseconds: -1, ready)
    #expect(ready.descriptors.map(\.number) == [poll.waker.descriptor] && ready.loss == nil)
    let other = poll.waker.descriptor
    #expect(dup2(file.rawValue, other) == other)
    poll.close()
    for number in [number, other] {
      #expect(FileIdentity(of: number) == FileIdentity(of: file.rawValue))
      close(number)
    }
  }

  /// A signalfd's number may be that of a pipe by now, whose bytes are no place in the table of signals.
  @Test func whatIsReadFromAnotherFileIsNoSignal() {
    var ends: [Int32] = [-1, -1]
    #expect(clinux_pipe(&ends) == 0)
    let end = OwnedDescriptor(owning: ends[0])
    let other = OwnedDescriptor(owning: ends[1])
    let bytes = [UInt8](repeating: 0x77, count: 128)
    #expect(write(other.rawValue, bytes, bytes.count) == bytes.count)
    clinux_signal_drain(end.rawValue)
  }
}
