// SPDX-License-Identifier: Apache-2.0
// One thread, signalfd and epoll: what the machine allows.
#define _GNU_SOURCE
#include "bench.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(poll, EPOLL_CTL_ADD, signals, &event);
  bench_ready();
  for (;;) {
    epoll_wait(poll, &event, 1, -1);
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
      bench_stamp();
  }
}
