// SPDX-License-Identifier: Apache-2.0
#include "CExploration.h"

#include <stdatomic.h>

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
// Set before the first exploration, and not changed since. Only threads in a run read the second.
static _Atomic(cexploration_take) take_job;
static executor main_stand_in;

bool cexploration_offer(void *job, bool is_for_main) {
  cexploration_take take = take_job;
  if (!take || (!current && !atomic_load_explicit(&explorations, memory_order_relaxed))) return false;
  uint64_t task = swift_task_getJobTaskId(job);
  return (current || task) && take(current, job, task, is_for_main);
}

// A hook: its action, and the hook that was set before. A thread may still be in it as the next exploration sets it.
#define HOOK(name, result, parameters, arguments, original, ...) \
  static SWIFT result (*_Atomic name##_before) parameters;       \
  static bool name##_is_set;                                     \
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

// Sets a hook, unless another tool has set one over ours: the two could call each other without end.
#define SET(hook, function)                                 \
  if (!hook || !function##_is_set) {                        \
    function##_before = hook;                               \
    function##_is_set = true;                               \
    /* Threads that see it must see the one before, too. */ \
    __atomic_store_n(&hook, function, __ATOMIC_RELEASE);    \
  }

// Puts the hook from before back. Other tools take any hook that is set for their own.
#define UNSET(hook, function)                                        \
  if (hook == function) {                                            \
    __atomic_store_n(&hook, function##_before, __ATOMIC_RELEASE);    \
    function##_is_set = false;                                       \
  }

#define ALL(DO)                                         \
  DO(swift_task_enqueueGlobal_hook, global)             \
  DO(swift_task_enqueueMainExecutor_hook, main_queue)   \
  DO(swift_task_getMainExecutor_hook, main_executor)    \
  DO(swift_task_isMainExecutor_hook, is_main_executor)

static bool runtime_has_all(void) {
#define HAS(hook, function) && &hook
  return swift_task_getJobTaskId ALL(HAS);
}

bool cexploration_is_installed(void) {
#define IS(hook, function) && hook == function
  return true ALL(IS);
}

bool cexploration_begin(cexploration_take take, void *main_identity, const void *main_witnesses) {
  atomic_fetch_add(&explorations, 1);
  if (!runtime_has_all()) return false;
  if (!take_job) {
    main_stand_in = (executor){main_identity, main_witnesses};
    take_job = take;
  }
  ALL(SET)
  return cexploration_is_installed();
}

int cexploration_end(void) {
  int left = atomic_fetch_sub(&explorations, 1) - 1;
  if (left == 0 && runtime_has_all()) {
    ALL(UNSET)
  }
  return left;
}

void cexploration_enter(const void *run) { current = run; }
