// SPDX-License-Identifier: Apache-2.0
// Counts what a thread does from the return of poll(2) to the first line of a hook, preloaded. build: -shared
// -fPIC. Under callgrind with --collect-atstart=no each hook makes a dump: the instructions since the dump before.
// Allocations are counted beside allocations.c.
#define _GNU_SOURCE
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <valgrind/callgrind.h>

// From allocations.c, where that is preloaded too.
__attribute__((weak)) uint64_t bench_thread_allocations(void);
static uint64_t allocations_so_far(void) { return bench_thread_allocations ? bench_thread_allocations() : 0; }

static _Thread_local bool is_counting;
static _Thread_local uint64_t allocations_before;
static uint64_t least = UINT64_MAX;

static void stop(void) {
  if (is_counting) CALLGRIND_TOGGLE_COLLECT;
  is_counting = false;
}

int poll(struct pollfd *files, nfds_t number, int milliseconds) {
  // What the last one has brought was no hook, or another thread runs it.
  stop();
  struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
  int count = ppoll(files, number, milliseconds < 0 ? NULL : &time, NULL);
  if (count > 0) {
    allocations_before = allocations_so_far();
    is_counting = true;
    CALLGRIND_TOGGLE_COLLECT;
  }
  return count;
}

// What bench.h declares, and a program without this library does not have.
void bench_hook_begins(void) {
  if (!is_counting) return;
  stop();
  CALLGRIND_DUMP_STATS;
  uint64_t allocations = allocations_so_far() - allocations_before;
  if (allocations < least) least = allocations;
}

uint64_t bench_allocations_to_hook(void) { return least; }
