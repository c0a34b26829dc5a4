// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int clease_problem(void) {
#ifdef __GLIBC__
  return getauxval(AT_SECURE) ? EPERM : 0;
#else
  return ENOSYS;
#endif
}

#ifdef __GLIBC__
static void report(int error, int status) {
  clease_report report = {.error = error, .status = status};
  // Nobody may read it any more.
  if (write(CLEASE_REPORTS, &report, sizeof report) < 0) return;
}

static int pidfd(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

/// The command; it ends with the guard, should somebody kill that.
static void run(char **command, pid_t guard) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard) _exit(127);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  fcntl(CLEASE_REPORTS, F_SETFD, FD_CLOEXEC);
  execvp(command[0], command);
  report(errno, 0);
  _exit(127);
}

/// Ends the process group: with SIGTERM, which the guard ignores, and after a while with SIGKILL, which ends the guard, too.
/// Orphans of the command are the guard's children.
static void end_all(void) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  kill(0, SIGTERM);
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += CLEASE_PATIENCE / 1000;
  while (1) {
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {}
    if (ended < 0) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec)) break;
    sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = 100000000});
  }
  kill(0, SIGKILL);
}

static void guard(pid_t parent, char **command) {
  // All but the three.
  syscall(SYS_close_range, CLEASE_REPORTS + 1, ~0U, 0);
  prctl(PR_SET_NAME, "lease-guard");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int number = 1; number < NSIG; number++) if (number != SIGCHLD) signal(number, SIG_IGN);
  sigset_t child_ends;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigprocmask(SIG_SETMASK, &child_ends, NULL);
  signal(SIGCHLD, SIG_DFL);

  pid_t self = getpid(), child = fork();
  if (child == 0) run(command, self);
  if (child < 0) return report(errno, 0);
  close(1);
  // Its input hangs up when the daemon wants that, or has ended; unless a child of the daemon's has the other end, too.
  struct pollfd ends[] = {{.fd = 0}, {.fd = pidfd(parent), .events = POLLIN}, {.fd = pidfd(child), .events = POLLIN}};
  if (ends[2].fd < 0) {
    report(errno, 0);
  } else if (getppid() == parent) {
    while (poll(ends, 3, -1) < 0 && errno == EINTR) {}
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) report(0, status);
  }
  end_all();
}

__attribute__((constructor(101))) static void begin(int count, char **arguments, char **environment) {
  (void)environment;
  const char *daemon = getenv(CLEASE_VARIABLE);
  if (!daemon) return;
  // It signals its process group, which must not be another's.
  if (clease_problem() || count < 2 || getpgrp() != getpid()) _exit(126);
  pid_t parent = atoi(daemon);
  unsetenv(CLEASE_VARIABLE);
  guard(parent, arguments + 1);
  _exit(0);
}
#endif
