// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <stdatomic.h>

// A thread in poll(2) is woken by a byte through a pair of connected sockets. Not through an eventfd or a pipe: if
// other code of the process has closed the number, and reuses it for its own file, send(2) refuses all but sockets.
// Another socket would receive the byte; but once our writing end is closed, the reading end hangs up, and the
// listening thread makes this waker forget both.
struct clinux_waker {
  _Atomic int read_end, write_end;  // -1: none
};

clinux_waker *clinux_waker_make(void) {
  clinux_waker *waker = calloc(1, sizeof *waker);
  if (!waker) abort();
  clinux_waker_forget(waker);
  return waker;
}

int clinux_waker_open(clinux_waker *waker) {
  if (atomic_load(&waker->write_end) >= 0) return 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return errno;
  atomic_store(&waker->read_end, ends[0]);
  atomic_store(&waker->write_end, ends[1]);
  return 0;
}

void clinux_waker_forget(clinux_waker *waker) {
  atomic_store(&waker->write_end, -1);
  atomic_store(&waker->read_end, -1);
}

static void close_end(int number) {
  struct stat status;
  if (fstat(number, &status) == 0 && S_ISSOCK(status.st_mode)) close(number);
}

void clinux_waker_close(clinux_waker *waker) {
  close_end(atomic_exchange(&waker->write_end, -1));
  close_end(atomic_exchange(&waker->read_end, -1));
}

void clinux_waker_free(clinux_waker *waker) {
  clinux_waker_close(waker);
  free(waker);
}

int clinux_waker_read_end(clinux_waker *waker) { return atomic_load(&waker->read_end); }

bool clinux_waker_drain(clinux_waker *waker) {
  char bytes[256];
  // Once: bytes that are left keep the descriptor readable.
  return recv(atomic_load(&waker->read_end), bytes, sizeof bytes, MSG_DONTWAIT) > 0;
}

void clinux_waker_wake(clinux_waker *waker) {
  char byte = 0;
  // EAGAIN: the socket is full, so the thread wakes anyway.
  send(atomic_load(&waker->write_end), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}
