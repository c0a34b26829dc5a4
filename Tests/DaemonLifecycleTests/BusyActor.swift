// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport

@testable import DaemonLifecycle

/// An actor that can be kept busy, so that its hook has to wait for it.
actor BusyActor: BackgroundObserver {
  private let log: Log
  let isIn = Gate()
  init(_ log: Log) { self.log = log }

  /// Holds the actor, and its thread, until the condition is met.
  func occupy(until isOver: @Sendable () -> Bool) {
    isIn.open()
    while !isOver() { usleep(1000) }
  }

  func run(_ body: @Sendable () -> Void) { body() }
  func didEnterBackground(_ notification: DidEnterBackground) { log.add("began") }
}
