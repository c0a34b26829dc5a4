// SPDX-License-Identifier: Apache-2.0
// Counts allocations, preloaded into a contestant. build: -shared -fPIC
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static uint64_t count;
// Not found by a call, which would allocate.
static _Thread_local uint64_t count_of_thread __attribute__((tls_model("initial-exec")));
static void one_more(void) {
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  count_of_thread++;
}

// What bench.h declares, and a program without this library does not have.
uint64_t bench_allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }
// Those of the calling thread.
uint64_t bench_thread_allocations(void) { return count_of_thread; }

// glibc's own names for what these replace: no dlsym, which allocates itself.
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { return one_more(), __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return one_more(), __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { return one_more(), __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { return one_more(), __libc_memalign(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) {
  one_more();
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : 12;
}
