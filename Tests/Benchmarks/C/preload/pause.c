// SPDX-License-Identifier: Apache-2.0
// Has callgrind, under --instr-atstart=no, count what all threads do, preloaded. build: -shared -fPIC. Each end makes a dump.
#include <stdbool.h>
#include <valgrind/callgrind.h>

// What bench.h declares, and a program without this library does not have.
void bench_count_all(bool counts) {
  if (counts) {
    CALLGRIND_START_INSTRUMENTATION;
  } else {
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS;
  }
}
