// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle

extension LifecycleInterface {
  /// Logs where threads that run hooks, work and other Swift tasks wait: when a hook is cancelled at its deadline or by
  /// a second terminating signal, and for the request `.describe`.
  ///
  /// ```swift
  /// configuration.signals[.sigquit] = .describe
  /// configuration.interfaces.append(.threadTraces)
  /// // lifecycle: Described: thread 4711 waits in read, Orders.shouldSaveState.
  /// ```
  ///
  /// The threads are not interrupted: the kernel says where each waits (proc_pid_syscall(5)), and the call frame
  /// information of the code leads from there to its callers. So a running thread is not found, and a suspended hook
  /// has no thread. Functions that the optimizer has inlined, or that end in a tail call, have no frame. In a stripped
  /// program the places are offsets, for addr2line(1). Where /proc is not accessible, nothing is logged.
  ///
  /// It needs a few milliseconds for each thread, on a thread of the subject's own. It works on x86-64; for arm64 it
  /// was compiled, but not run.
  public static var threadTraces: Self {
    Self("thread traces", .traces { ThreadTraces.sentences() })
  }
}
