#include "CLinux.h"

#include <stdio.h>
#include <sys/file.h>

int clinux_open_at(int directory, const char *name, int flags, mode_t mode) {
  return openat(directory, name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
}

int clinux_rename_at(int directory, const char *from, const char *to) {
  return renameat(directory, from, directory, to);
}

int clinux_lock_file(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }
void clinux_unlock_file(int fd) { flock(fd, LOCK_UN); }

DIR *clinux_names_at(int directory) {
  // Opened afresh: a duplicate would share the position with other streams.
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
