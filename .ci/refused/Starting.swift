// SPDX-License-Identifier: Apache-2.0
// Must not compile: 'runAndExit' is unavailable from asynchronous contexts
import DaemonLifecycle

/// The main actor would be blocked from its first suspension on.
func start() async { LifecycleSubject.runAndExit { _ in } }
