// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLease.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
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

unsigned long long clease_inode(int fd) {
  struct stat file = {.st_ino = 0};
  fstat(fd, &file);
  return file.st_ino;
}

int clease_pidfd(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

#ifdef __GLIBC__
static void report(int error, int status) {
  clease_report report = {.error = error, .status = status};
  // Nobody may read it any more.
  if (write(CLEASE_REPORTS, &report, sizeof report) < 0) return;
}

/// The command. Should somebody kill the guard, no other may run beside it.
static void run(char **command, pid_t guard) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
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

/// Signals the guard's children that are not in `told`, or all; orphans of its descendants are its children, too. There is one
/// at least: a kernel that lists none leaves the group to be killed, with the guard, and so with the command.
static void signal_children(int number, pid_t told[], int *count, int capacity) {
  FILE *children = fopen("/proc/thread-self/children", "re");
  int child, isListed = 0;
  while (children && fscanf(children, "%d", &child) == 1) {
    int index = 0;
    isListed = 1;
    while (index < *count && told[index] != child) index++;
    if (number != SIGKILL && (index < *count || getpgid(child) == getpgrp())) continue;
    kill(child, number);
    if (index == *count && *count < capacity) told[(*count)++] = child;
  }
  if (children) fclose(children);
  if (!isListed && number == SIGKILL) kill(0, SIGKILL);
}

/// Ends all that the command has started: with SIGTERM, and with SIGKILL after a while, or when the daemon wants that.
static void end_all(const sigset_t *signals) {
  pid_t told[64];
  int count = 0, number = SIGTERM;
  struct timespec now, begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  // The group at once, which the guard survives. Who has left it is told as a child, of which it may become one later.
  kill(0, SIGTERM);
  while (1) {
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {}
    if (ended < 0) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long passed = (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000;
    if (passed >= CLEASE_PATIENCE) number = SIGKILL;
    signal_children(number, told, &count, sizeof told / sizeof *told);
    if (sigtimedwait(signals, NULL, &(struct timespec){.tv_nsec = 20000000}) == SIGUSR1) number = SIGKILL;
  }
}

static void guard(pid_t parent, char **command) {
  // All but the three, and standard error.
  syscall(SYS_close_range, CLEASE_REPORTS + 1, ~0U, 0);
  if (fcntl(2, F_GETFD) < 0) open("/dev/null", O_WRONLY);
  report(0, CLEASE_BEGUN);
  prctl(PR_SET_NAME, "lease-guard");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals, asked;
  sigemptyset(&asked);
  sigaddset(&asked, SIGTERM);
  sigaddset(&asked, SIGUSR1);
  signals = asked;
  sigaddset(&signals, SIGCHLD);
  for (int number = 1; number < NSIG; number++) signal(number, sigismember(&signals, number) > 0 ? SIG_DFL : SIG_IGN);
  sigprocmask(SIG_SETMASK, &signals, NULL);

  pid_t self = getpid(), child = fork();
  if (child == 0) run(command, self);
  if (child < 0) return report(errno, 0);
  close(1);
  // Until the daemon has ended, or its end of the guard's input, which a child of the daemon's may have, too; until it asks;
  // or until the command has ended: SIGCHLD would come when it is stopped, too, or when another process ends.
  struct pollfd ends[] = {{.fd = 0}, {.fd = clease_pidfd(parent), .events = POLLIN},
                          {.fd = clease_pidfd(child), .events = POLLIN},
                          {.fd = signalfd(-1, &asked, SFD_CLOEXEC), .events = POLLIN}};
  if (getppid() == parent) while (poll(ends, 4, -1) < 0 && errno == EINTR) {}
  int status = 0;
  if (waitpid(child, &status, WNOHANG) == child) report(0, status);
  end_all(&signals);
}

__attribute__((constructor(101))) static void begin(int count, char **arguments, char **environment) {
  (void)environment;
  const char *value = getenv(CLEASE_VARIABLE);
  unsigned long long inode;
  pid_t parent;
  if (!value || sscanf(value, "%d:%llu", &parent, &inode) < 2 || clease_problem()) return;
  if (inode == 0 || inode != clease_inode(CLEASE_REPORTS)) return;
  // It signals its process group, which must not be another's.
  if (count < 2 || getpgrp() != getpid()) _exit(126);
  unsetenv(CLEASE_VARIABLE);
  guard(parent, arguments + 1);
  _exit(0);
}
#endif
