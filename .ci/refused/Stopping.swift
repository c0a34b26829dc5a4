// SPDX-License-Identifier: Apache-2.0
// Must not compile: to end the daemon: terminate(); to give its signals back: restoreSignals()
import DaemonLifecycle

func stop(_ lifecycle: LifecycleSubject) { lifecycle.stop() }
