// SPDX-License-Identifier: Apache-2.0
// link: -lsystemd
#include "bench.h"
#include <signal.h>
#include <systemd/sd-event.h>

static int handle(sd_event_source *source, const struct signalfd_siginfo *info, void *context) {
  (void)source, (void)info, (void)context;
  bench_stamp();
  return 0;
}

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  sd_event *event = NULL;
  if (sd_event_new(&event) < 0) return 1;
  if (sd_event_add_signal(event, NULL, SIGUSR1, handle, NULL) < 0) return 1;
  if (sd_event_add_signal(event, NULL, SIGUSR2, handle, NULL) < 0) return 1;
  bench_ready();
  return sd_event_loop(event);
}
