// SPDX-License-Identifier: Apache-2.0
#include "CLinux.h"

int clinux_make_timer(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

bool clinux_set_timer(int fd, int64_t nanoseconds) {
  struct itimerspec time = {
      .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000},
  };
  return timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL) == 0;
}
