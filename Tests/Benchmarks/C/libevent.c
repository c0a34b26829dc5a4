// SPDX-License-Identifier: Apache-2.0
// link: -levent
#include "bench.h"
#include <event2/event.h>
#include <signal.h>

static void handle(evutil_socket_t number, short what, void *context) {
  (void)number, (void)what, (void)context;
  bench_stamp();
}

int main(void) {
  struct event_base *base = event_base_new();
  if (!base) return 1;
  evsignal_add(evsignal_new(base, SIGUSR1, handle, NULL), NULL);
  evsignal_add(evsignal_new(base, SIGUSR2, handle, NULL), NULL);
  bench_ready();
  return event_base_dispatch(base);
}
