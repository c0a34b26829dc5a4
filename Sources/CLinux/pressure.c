#define _GNU_SOURCE
#include "CLinux.h"

#include <sys/statfs.h>

typedef struct {
  char name[16];  // a copy, cut as pthread_setname_np(3) wants it: the caller's may be gone when the thread runs
  void (*body)(void *);
  void *context;
} start;

static void *run(void *raw) {
  start copy = *(start *)raw;
  free(raw);
  pthread_setname_np(pthread_self(), copy.name);
  copy.body(copy.context);
  return NULL;
}

int clinux_start_quiet_thread(const char *name, void (*body)(void *), void *context) {
  start *given = malloc(sizeof *given);
  if (given == NULL) return ENOMEM;
  *given = (start){.body = body, .context = context};
  strncpy(given->name, name, sizeof given->name - 1);
  // Inherited blocked, so that there is no moment in which a signal could land on it. Those of the
  // thread's own faults stay: blocked, they would kill without the backtrace.
  sigset_t blocked, before;
  sigfillset(&blocked);
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  int failure = pthread_create(&thread, &attributes, run, given);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (failure) free(given);
  return failure;
}

int clinux_is_pressure_file(int fd) {
  struct statfs system;
  if (fstatfs(fd, &system) != 0) return -1;
  unsigned long type = (unsigned long)system.f_type;
  if (type != 0x9fa0UL /* PROC_SUPER_MAGIC */ && type != 0x63677270UL /* CGROUP2_SUPER_MAGIC */)
    return 0;
  // These systems have files that act on what is written. The content tells, since what leads here may be a link.
  char start[11];
  ssize_t count = pread(fd, start, sizeof start, 0);
  if (count < 0) return -1;
  return count == sizeof start &&
         (memcmp(start, "some avg10=", 11) == 0 || memcmp(start, "full avg10=", 11) == 0);
}
