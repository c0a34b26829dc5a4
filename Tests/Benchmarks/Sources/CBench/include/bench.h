// SPDX-License-Identifier: Apache-2.0
// What a contestant says to the harness, on descriptor 3: a byte when it is ready, then what the row asks for.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_CHANNEL = 3 };

static inline uint64_t bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// A short write means that the harness has gone, which ends the contestant soon anyway.
static inline void bench_ready(void) {
  if (write(BENCH_CHANNEL, "r", 1) != 1) _exit(1);
}

// The time at which the first line of a handler ran: to be called there.
static inline void bench_stamp(void) {
  uint64_t time = bench_now();
  if (write(BENCH_CHANNEL, &time, sizeof time) != sizeof time) _exit(1);
}

// One observer's work at the end, the same for all contestants: 256 bytes into a file. 0 when it worked.
int bench_write_file(const char *directory, int number);

// How many allocations there were; only where C/preload/allocations.c is preloaded.
__attribute__((weak)) uint64_t bench_allocations(void);
static inline int bench_counts_allocations(void) { return bench_allocations != NULL; }

// To be called in the first line of a hook, and the fewest allocations that there were from the return of poll(2)
// to there; only where C/preload/wakeup.c is preloaded.
__attribute__((weak)) void bench_hook_begins(void);
__attribute__((weak)) uint64_t bench_allocations_to_hook(void);
// Whether valgrind counts what all threads do; only where C/preload/pause.c is preloaded.
__attribute__((weak)) void bench_count_all(bool counts);
static inline int bench_counts_to_hook(void) { return bench_hook_begins != NULL; }
static inline void bench_note_hook(void) {
  if (bench_counts_to_hook()) bench_hook_begins();
}
