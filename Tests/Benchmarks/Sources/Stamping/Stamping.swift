// SPDX-License-Identifier: Apache-2.0
import CBench
public import DaemonLifecycle

// Observers whose first line is a stamp: SIGUSR1 and SIGUSR2 call them in turn.
// The foreground of the launch is none of the harness's business.

public actor StampingActor: BackgroundObserver, ForegroundObserver {
  public init() {}
  public func didEnterBackground(_ notification: DidEnterBackground) async { bench_stamp() }
  public func willEnterForeground(_ notification: WillEnterForeground) async {
    if notification.cause.signal != nil { bench_stamp() }
  }
}

@MainActor public final class StampingOnMain: BackgroundObserver, ForegroundObserver {
  public init() {}
  public func didEnterBackground(_ notification: DidEnterBackground) async { bench_stamp() }
  public func willEnterForeground(_ notification: WillEnterForeground) async {
    if notification.cause.signal != nil { bench_stamp() }
  }
}
