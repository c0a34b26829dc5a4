// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle

extension WorkRound {
  /// Makes a round for a test of code that takes one. Its time is real.
  public convenience init() { self.init(clock: nil) }

  /// Marks a test's round as ending. Further calls have no effect, nor has a call for a daemon's round.
  public func end() { if clock == nil { for handler in beginEnding() { handler() } } }
}
