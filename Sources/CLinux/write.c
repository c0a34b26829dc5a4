// SPDX-License-Identifier: Apache-2.0
#include "CLinux.h"

ssize_t clinux_write(int fd, const void *bytes, size_t count) {
  // Both signals are for the thread that writes, so blocking them on it is enough: the process's dispositions are not
  // ours to change, and other threads' signals go where they went.
  static const int numbers[] = {SIGPIPE, SIGXFSZ};
  sigset_t raised, before, pending;
  sigemptyset(&raised);
  sigemptyset(&pending);
  for (size_t i = 0; i < 2; i++) sigaddset(&raised, numbers[i]);
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  sigpending(&pending);

  ssize_t written = write(fd, bytes, count);
  int error = errno;
  // A pipe that broke in mid-write raises SIGPIPE too.
  if (written < 0 || (size_t)written < count) {
    // What was pending before is somebody else's.
    for (size_t i = 0; i < 2; i++)
      if (sigismember(&pending, numbers[i]) == 1) sigdelset(&raised, numbers[i]);
    struct timespec now = {0, 0};
    while (sigtimedwait(&raised, NULL, &now) >= 0 || errno == EINTR) {}
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return written;
}
