// SPDX-License-Identifier: Apache-2.0
// link: -luv
#include "bench.h"
#include <signal.h>
#include <uv.h>

static void handle(uv_signal_t *source, int number) {
  (void)source, (void)number;
  bench_stamp();
}

int main(void) {
  uv_signal_t sources[2];
  uv_signal_init(uv_default_loop(), &sources[0]);
  uv_signal_start(&sources[0], handle, SIGUSR1);
  uv_signal_init(uv_default_loop(), &sources[1]);
  uv_signal_start(&sources[1], handle, SIGUSR2);
  bench_ready();
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
