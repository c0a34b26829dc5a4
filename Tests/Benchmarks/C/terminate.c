// SPDX-License-Identifier: Apache-2.0
// Three components that write a file each when SIGTERM comes, as plainly as can be.
#include "bench.h"
#include <signal.h>

int main(int count, char **arguments) {
  if (count < 2) return 64;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  bench_ready();
  int number;
  sigwait(&set, &number);
  for (int component = 3; component > 0; component--)
    if (bench_write_file(arguments[1], component) != 0) return 1;
  return 0;
}
