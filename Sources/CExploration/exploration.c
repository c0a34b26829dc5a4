// SPDX-License-Identifier: Apache-2.0
#include "CExploration.h"

#include <stdatomic.h>
#include <stddef.h>

#define SWIFT __attribute__((swiftcall))

typedef struct {
  void *identity;
  const void *witnesses;
} executor;

typedef SWIFT void (*enqueue)(void *job);
typedef SWIFT executor (*get_main)(void);
typedef SWIFT bool (*is_main)(executor);

// Weak, so that a test program still loads with a runtime that lacks one of them.
#pragma clang attribute push(__attribute__((weak)), apply_to = any(variable, function))
extern SWIFT void (*swift_task_enqueueGlobal_hook)(void *, enqueue);
extern SWIFT void (*swift_task_enqueueMainExecutor_hook)(void *, enqueue);
extern SWIFT executor (*swift_task_getMainExecutor_hook)(get_main);
extern SWIFT bool (*swift_task_isMainExecutor_hook)(executor, is_main);
extern SWIFT uint64_t swift_task_getJobTaskId(void *job);
#pragma clang attribute pop

static _Thread_local const void *current;
static atomic_int explorations;
// Set once, before the first exploration; the other only read by threads of explorations, after that.
static _Atomic(cexploration_take) take_job;
static executor main_stand_in;

bool cexploration_offer(void *job, bool is_for_main) {
  cexploration_take take = take_job;
  if (!take || (!current && !atomic_load_explicit(&explorations, memory_order_relaxed))) return false;
  uint64_t task = swift_task_getJobTaskId(job);
  return (current || task) && take(current, job, task, is_for_main);
}

// A hook: what it does first, and what was set before.
#define HOOK(name, result, parameters, arguments, original, ...) \
  static SWIFT result (*_Atomic name##_before) parameters;       \
  static SWIFT result name parameters {                          \
    __VA_ARGS__;                                                 \
    SWIFT result (*before) parameters = name##_before;           \
    return before ? before arguments : original;                 \
  }

HOOK(global, void, (void *job, enqueue next), (job, next), next(job), if (cexploration_offer(job, false)) return)
HOOK(main_queue, void, (void *job, enqueue next), (job, next), next(job), if (cexploration_offer(job, true)) return)
HOOK(main_executor, executor, (get_main next), (next), next(), if (current) return main_stand_in)
HOOK(is_main_executor, bool, (executor it, is_main next), (it, next), next(it),
     if (current) return it.identity == main_stand_in.identity)

// Sets a hook, unless another tool has set it since: each of the two could call the other without end.
#define SET(hook, function)                                 \
  if (!hook || !take_job) {                                 \
    function##_before = hook;                               \
    /* Threads that see it must see the one before, too. */ \
    __atomic_store_n(&hook, function, __ATOMIC_RELEASE);    \
  }

bool cexploration_install(cexploration_take take, void *main_identity, const void *main_witnesses) {
  if (!swift_task_getJobTaskId || !&swift_task_enqueueGlobal_hook || !&swift_task_enqueueMainExecutor_hook ||
      !&swift_task_getMainExecutor_hook || !&swift_task_isMainExecutor_hook)
    return false;
  if (!take_job) main_stand_in = (executor){main_identity, main_witnesses};
  SET(swift_task_enqueueGlobal_hook, global)
  SET(swift_task_enqueueMainExecutor_hook, main_queue)
  SET(swift_task_getMainExecutor_hook, main_executor)
  SET(swift_task_isMainExecutor_hook, is_main_executor)
  take_job = take;
  return cexploration_is_installed();
}

bool cexploration_is_installed(void) {
  return swift_task_enqueueGlobal_hook == global && swift_task_enqueueMainExecutor_hook == main_queue &&
         swift_task_getMainExecutor_hook == main_executor && swift_task_isMainExecutor_hook == is_main_executor;
}

int cexploration_count(int change) { return atomic_fetch_add(&explorations, change) + change; }

void cexploration_enter(const void *run) { current = run; }
