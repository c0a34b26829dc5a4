// SPDX-License-Identifier: Apache-2.0
// A handler on the main thread writes into a pipe, another thread reads it: two hops, as in our package.
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

static int ends[2];

static void handle(int number, siginfo_t *info, void *context) {
  (void)info, (void)context;
  int saved = errno;
  char byte = (char)number;
  if (write(ends[1], &byte, 1) != 1) _exit(1);
  errno = saved;
}

static void *listen_for_events(void *unused) {
  int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event);
  bench_ready();
  for (;;) {
    epoll_wait(poll, &event, 1, -1);
    char byte;
    while (read(ends[0], &byte, 1) == 1)
      bench_stamp();
  }
  return unused;
}

int main(void) {
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return 1;
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  // As under Swift's async main: the main thread is where a signal to the process lands.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  pthread_create(&thread, NULL, listen_for_events, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  for (;;) pause();
}
