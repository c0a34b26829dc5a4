// SPDX-License-Identifier: Apache-2.0
#include "CLinux.h"

#include <sys/statfs.h>

int clinux_is_pressure_file(int fd) {
  struct statfs system;
  if (fstatfs(fd, &system) != 0) return -1;
  unsigned long type = (unsigned long)system.f_type;
  if (type != 0x9fa0UL /* PROC_SUPER_MAGIC */ && type != 0x63677270UL /* CGROUP2_SUPER_MAGIC */)
    return 0;
  // Other files of these systems act on what is written. The content is checked, since the path may be a link.
  char start[11];
  ssize_t count = pread(fd, start, sizeof start, 0);
  if (count < 0) return -1;
  return count == sizeof start &&
         (memcmp(start, "some avg10=", 11) == 0 || memcmp(start, "full avg10=", 11) == 0);
}
