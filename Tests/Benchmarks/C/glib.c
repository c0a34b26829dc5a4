// SPDX-License-Identifier: Apache-2.0
// link: -lglib-2.0 -I/usr/include/glib-2.0 -I/usr/lib/x86_64-linux-gnu/glib-2.0/include -I/usr/lib/aarch64-linux-gnu/glib-2.0/include
#include "bench.h"
#include <glib-unix.h>
#include <signal.h>

static gboolean handle(gpointer context) {
  (void)context;
  bench_stamp();
  return G_SOURCE_CONTINUE;
}

int main(void) {
  GMainLoop *loop = g_main_loop_new(NULL, FALSE);
  g_unix_signal_add(SIGUSR1, handle, NULL);
  g_unix_signal_add(SIGUSR2, handle, NULL);
  bench_ready();
  g_main_loop_run(loop);
}
