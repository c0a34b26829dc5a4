// SPDX-License-Identifier: Apache-2.0
// The hooks of Swift's runtime by which an exploration takes all jobs of a run. Swift can't declare functions with its
// own calling convention. The runtime exports these hooks, but they are no API: RunJobs tries them out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {  // for Swift that is built with interoperability with C++
#endif

/// Takes a job. `run` is this thread's run; NULL on other threads, which are asked only during an exploration, and only
/// about tasks. `task` is the task's number; 0 for other jobs. False leaves the job to the runtime.
typedef bool (*cexploration_take)(const void *run, void *job, uint64_t task, bool is_for_main);

/// Sets the hooks for one more exploration; they call the hooks that other code had set. False when the runtime lacks
/// one, or another tool has set one over them. Calls of this function and `cexploration_end` must not overlap.
bool cexploration_begin(cexploration_take take, void *main_executor, const void *main_witnesses);

/// Ends an exploration. Returns how many are left; the last one puts the hooks back that were set before.
int cexploration_end(void);

/// Whether all hooks are still set.
bool cexploration_is_installed(void);

/// Passes a job on, as the hooks do.
bool cexploration_offer(void *job, bool is_for_main);

/// Sets the run that this thread is in; NULL for none.
void cexploration_enter(const void *run);

#ifdef __cplusplus
}
#endif
