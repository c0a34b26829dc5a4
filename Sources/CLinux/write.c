// SPDX-License-Identifier: Apache-2.0
#include "CLinux.h"

#include <limits.h>
#include <stdio_ext.h>

ssize_t clinux_write(int fd, const void *bytes, size_t count) {
  // Both signals are for the thread that writes, so blocking them on it is enough, and changes nothing for the process.
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
    // A signal that was pending before does not come from this write.
    for (size_t i = 0; i < 2; i++)
      if (sigismember(&pending, numbers[i]) == 1) sigdelset(&raised, numbers[i]);
    struct timespec now = {0, 0};
    while (sigtimedwait(&raised, NULL, &now) >= 0 || errno == EINTR) {}
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return written;
}

/// Writes the buffered bytes, if the reader has room for them.
static void flush_what_fits(void) {
  struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  // A pipe that is writable has room for PIPE_BUF bytes, as many as glibc buffers for it. POLLERR: it has no reader.
  if (__fpending(stdout) > 0 && __fpending(stdout) <= PIPE_BUF && poll(&output, 1, 0) == 1 &&
      output.revents == POLLOUT)
    fflush(stdout);
}

void clinux_line_buffer_output(void) {
  // The C library's own buffer has at most BUFSIZ bytes: with more, or none (1), the program has set another.
  size_t size = __fbufsize(stdout);
  if (isatty(STDOUT_FILENO) || size == 1 || size > BUFSIZ) return;
  // setvbuf(3) waits for the thread that holds the stream: one that prints into a full pipe holds it until there is a
  // reader.
  for (int i = 0; ftrylockfile(stdout) != 0; i++) {
    if (i == 1000) return;
    sched_yield();
  }
  // ISO C (7.21.5.6) allows it only before any other operation on the stream. glibc allows it at any time: given no
  // buffer, _IO_setvbuf() (libio/iosetvbuf.c) sets the mode under the stream's lock, and leaves the buffer with what is
  // in it. Musl's (src/stdio/setvbuf.c) does the same without the lock, which is held here.
  setvbuf(stdout, NULL, _IOLBF, 0);
  flush_what_fits();
  funlockfile(stdout);
}
