// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <dlfcn.h>

// Functions of Dispatch, without its headers. Weak: a process without Dispatch has nothing to prepare.
#define WEAK __attribute__((weak)) extern
// Public.
WEAK uint64_t dispatch_time(uint64_t when, int64_t delta);
WEAK void dispatch_after_f(uint64_t when, void *queue, void *context, void (*work)(void *));
WEAK void *dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);
// For run loops (CoreFoundation calls it): makes the main queue's eventfd, if it has none yet.
WEAK int _dispatch_get_main_queue_handle_4CF(void);

// DISPATCH_TIME_NOW, DISPATCH_WALLTIME_NOW, and the clock that Swift's ContinuousClock sleeps on
// (DISPATCH_MONOTONICTIME_NOW, of Dispatch's private headers; where it does not exist, a wall clock's time long ago).
static const uint64_t clocks[] = {0, ~1ull, 1ull << 63};
#define CLOCKS (sizeof clocks / sizeof *clocks)
// A queue with a thread of its own, even while the others are blocked (DISPATCH_QUEUE_OVERCOMMIT, private as well).
#define OVERCOMMIT 2

static void ignore(void *context) { (void)context; }
#define YEAR (365ll * 86400 * 1000000000)

void clinux_prepare_dispatch(void (*ring)(void *), void *context) {
  if (!dispatch_time || !dispatch_after_f || !dispatch_get_global_queue) return ring(context);
  if (_dispatch_get_main_queue_handle_4CF) _dispatch_get_main_queue_handle_4CF();
  void *queue = dispatch_get_global_queue(0, OVERCOMMIT);
  // A year from now: a time that has passed when Dispatch checks it, as on a busy machine, needs no timer.
  for (size_t i = 0; i < CLOCKS; i++) dispatch_after_f(dispatch_time(clocks[i], YEAR), queue, NULL, ignore);
  // Dispatch adds them, one after another, and then sets all clocks; so the last one shows that all are set. A
  // shorter time delays READY less, but may be over too soon: then Dispatch rings just before it sets the clocks.
  dispatch_after_f(dispatch_time(clocks[0], 250000), queue, context, ring);
}

// MARK: The owner of a handler

uintptr_t clinux_dispatch_code(void) { return (uintptr_t)dispatch_time; }

const char *clinux_file_of_code(uintptr_t address) {
  Dl_info info;
  return dladdr((void *)address, &info) ? info.dli_fname : NULL;
}

uint64_t clinux_signal_descriptors(int own_descriptor, uint64_t otherwise) {
  DIR *names = opendir("/proc/self/fdinfo");
  if (!names) return errno != EMFILE && errno != ENFILE ? otherwise : 0;
  uint64_t signals = 0;
  for (struct dirent *entry; (entry = readdir(names));) {
    int file = atoi(entry->d_name) == own_descriptor ? -1 : openat(dirfd(names), entry->d_name, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    char text[512];
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size < 0 ? 0 : size] = 0;
    const char *mask = strstr(text, "sigmask:\t");
    uint64_t these = mask ? strtoull(mask + strlen("sigmask:\t"), NULL, 16) : 0;
    // Dispatch makes a signalfd for each signal.
    if (__builtin_popcountll(these) == 1) signals |= these;
  }
  closedir(names);
  return signals;
}
