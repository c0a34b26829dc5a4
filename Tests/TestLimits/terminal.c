// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "limits_of_tests.h"

int terminal_open(char *path, size_t size) {
  int keyboard = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (keyboard < 0) return -1;
  if (grantpt(keyboard) == 0 && unlockpt(keyboard) == 0 && ptsname_r(keyboard, path, size) == 0) return keyboard;
  return -1;
}
