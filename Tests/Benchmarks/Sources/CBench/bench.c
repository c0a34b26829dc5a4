// SPDX-License-Identifier: Apache-2.0
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>

int bench_write_file(const char *directory, int number) {
  char path[512];
  char bytes[256] = {0};
  snprintf(path, sizeof path, "%s/%d", directory, number);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  ssize_t count = write(file, bytes, sizeof bytes);
  return close(file) == 0 && count == sizeof bytes ? 0 : -1;
}
