// SPDX-License-Identifier: Apache-2.0
// Must not compile: 'ShouldSaveState' conform to 'CustomNotification'
import DaemonLifecycle

func post(_ lifecycle: LifecycleSubject) async { await lifecycle.post(ShouldSaveState()) }
