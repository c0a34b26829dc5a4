// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <sys/syscall.h>
#include <sys/vfs.h>

int clinux_start_thread(void *(*body)(void *), void *context) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, body, context);
  pthread_attr_destroy(&attributes);
  return error;
}

_Thread_local struct clinux_release_pool clinux_release_pool_of_thread;

void clinux_name_this_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

uint64_t clinux_process_number(pid_t pid) {
  int process = (int)syscall(SYS_pidfd_open, pid, 0);
  if (process < 0) return 0;
  struct statfs system;
  struct stat file;
  // PID_FS_MAGIC, which older headers lack. Before Linux 6.9 all pidfds shared a file.
  bool is_known = fstatfs(process, &system) == 0 && system.f_type == 0x50494446 && fstat(process, &file) == 0;
  close(process);
  return is_known ? file.st_ino : 0;
}

bool clinux_is_main_thread(void) { return syscall(SYS_gettid) == getpid(); }

// In glibc from 2.30 on, and in no other C library yet; a program that is linked statically has it only if something
// else needs it. Without it a wall clock that jumps changes the time of the wait.
extern int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict deadline)
    __attribute__((weak));

int clinux_wait_until(sem_t *semaphore, int64_t nanoseconds) {
  struct timespec deadline = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
  if (sem_clockwait) return sem_clockwait(semaphore, CLOCK_MONOTONIC, &deadline);
  struct timespec now, wall;
  clock_gettime(CLOCK_MONOTONIC, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  int64_t left = deadline.tv_nsec - now.tv_nsec + wall.tv_nsec + 1000000000;
  wall.tv_sec += deadline.tv_sec - now.tv_sec - 1 + left / 1000000000;
  wall.tv_nsec = left % 1000000000;
  return sem_timedwait(semaphore, &wall);
}

const char *clinux_program_name(void) { return program_invocation_short_name; }
