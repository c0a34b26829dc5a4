// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "limits_of_tests.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int own_descriptors(void) {
  const unsigned close_range_unshare = 2;
  return syscall(SYS_close_range, 3u, ~0u, close_range_unshare) == 0 ? 0 : errno;
}

int limits_set_soft(pid_t pid, int resource, uint64_t soft) {
  struct rlimit limit;
  if (prlimit(pid, resource, NULL, &limit) != 0) return errno;
  limit.rlim_cur = soft;
  return prlimit(pid, resource, &limit, NULL) == 0 ? 0 : errno;
}
