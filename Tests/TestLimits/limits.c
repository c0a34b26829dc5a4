// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "limits_of_tests.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

int limits_set_soft(pid_t pid, int resource, uint64_t soft) {
  struct rlimit limit;
  if (prlimit(pid, resource, NULL, &limit) != 0) return errno;
  limit.rlim_cur = soft;
  return prlimit(pid, resource, &limit, NULL) == 0 ? 0 : errno;
}
