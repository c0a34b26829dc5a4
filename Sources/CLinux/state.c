// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

int clinux_open_at(int directory, const char *name, int flags, mode_t mode) {
  return openat(directory, name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
}

int clinux_open_unnamed_at(int directory, mode_t mode) {
  return openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}

int clinux_link_at(int fd, int directory, const char *name) {
  // Without a capability before Linux 6.10 this is ENOENT; the other way needs /proc.
  if (linkat(fd, "", directory, name, AT_EMPTY_PATH) == 0) return 0;
  if (errno == EEXIST) return -1;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}

DIR *clinux_names_at(int directory) {
  // Opened again: a duplicate would share the position with other streams.
  int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return NULL;
  DIR *stream = fdopendir(fd);
  if (!stream) {
    int error = errno;
    close(fd);
    errno = error;
  }
  return stream;
}
