// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "limits_of_tests.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

// Tests run beside each other, each with subjects and mocks that have descriptors of their own: more in all than the
// 1024 that a process may have unless it asks. Before any test, whoever runs them.
__attribute__((constructor)) static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int limits_set_soft(pid_t pid, int resource, uint64_t soft) {
  struct rlimit limit;
  if (prlimit(pid, resource, NULL, &limit) != 0) return errno;
  limit.rlim_cur = soft;
  return prlimit(pid, resource, &limit, NULL) == 0 ? 0 : errno;
}
