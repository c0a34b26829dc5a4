// SPDX-License-Identifier: Apache-2.0
// Makes the slow path of Swift's Mutex known to the thread sanitizer.
//
// The fast path of Synchronization.Mutex is compiled into its users, so the sanitizer instruments it. The slow path is
// in libswiftSynchronization, which is not instrumented: a lock handed over under contention is reported as a race.
// These functions wrap the three slow ones and report the hand-over; nothing is suppressed.
//
// Only a build for the thread sanitizer has them (`swift test --sanitize=thread`), also of packages that use this one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT void lock_slow(uint32_t thread, SELF void *mutex) {
  SWIFT void (*real)(uint32_t, SELF void *) = dlsym(RTLD_NEXT, LOCK);
  real(thread, mutex);
  __tsan_acquire(mutex);
}

SWIFT void unlock_slow(SELF void *mutex) __asm__(UNLOCK);
SWIFT void unlock_slow(SELF void *mutex) {
  SWIFT void (*real)(SELF void *) = dlsym(RTLD_NEXT, UNLOCK);
  __tsan_release(mutex);
  real(mutex);
}

SWIFT bool try_lock_slow(SELF void *mutex) __asm__(TRY_LOCK);
SWIFT bool try_lock_slow(SELF void *mutex) {
  SWIFT bool (*real)(SELF void *) = dlsym(RTLD_NEXT, TRY_LOCK);
  bool locked = real(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}

#endif
#endif
