// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <stdatomic.h>

// A thread in poll(2) is woken by a byte through a pair of connected sockets. Not by an eventfd, since all of those
// share one inode: whether the number still refers to ours, after other code of the process has closed it, would be
// unknown, and a signal handler would write into the file that has the number now. A socket has an inode of its own,
// fstat(2) is async-signal-safe, and send(2) refuses everything that is no socket. So at worst, in the instant between
// the two calls, one byte reaches another socket that has just got the number.
typedef struct {
  _Atomic int number;  // -1: none
  _Atomic uint64_t inode;
} end;

struct clinux_waker {
  end read_end;
  end write_end;
  _Atomic uint64_t device;  // of the sockets' file system
  _Atomic int timer;        // a timerfd, and
  _Atomic int files;        // an epoll set that knows it by its file; -1: none
  _Atomic bool is_ringing;  // the timer was set in place of a byte
};

static bool is_ours(clinux_waker *waker, end *end, int number) {
  struct stat status;
  return number >= 0 && fstat(number, &status) == 0 && (uint64_t)status.st_dev == atomic_load(&waker->device) &&
         (uint64_t)status.st_ino == atomic_load(&end->inode);
}

clinux_waker *clinux_waker_make(void) {
  clinux_waker *waker = calloc(1, sizeof *waker);
  if (!waker) abort();
  atomic_store(&waker->write_end.number, -1);
  atomic_store(&waker->read_end.number, -1);
  clinux_waker_lend(waker, -1, -1);
  return waker;
}

void clinux_waker_lend(clinux_waker *waker, int timer, int files) {
  atomic_store(&waker->files, files);
  atomic_store(&waker->timer, timer);
}

int clinux_waker_open(clinux_waker *waker) {
  if (atomic_load(&waker->write_end.number) >= 0) return 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return errno;
  struct stat read_end, write_end;
  if (fstat(ends[0], &read_end) != 0 || fstat(ends[1], &write_end) != 0) {
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    return error;
  }
  atomic_store(&waker->device, write_end.st_dev);
  atomic_store(&waker->read_end.inode, read_end.st_ino);
  atomic_store(&waker->write_end.inode, write_end.st_ino);
  atomic_store(&waker->read_end.number, ends[0]);
  // Last: a handler that finds a number finds its inode too.
  atomic_store(&waker->write_end.number, ends[1]);
  return 0;
}

static void close_end(clinux_waker *waker, end *end) {
  int number = atomic_exchange(&end->number, -1);
  if (is_ours(waker, end, number)) close(number);
}

void clinux_waker_close(clinux_waker *waker) {
  clinux_waker_lend(waker, -1, -1);
  close_end(waker, &waker->write_end);
  close_end(waker, &waker->read_end);
}

void clinux_waker_free(clinux_waker *waker) {
  clinux_waker_close(waker);
  free(waker);
}

int clinux_waker_read_end(clinux_waker *waker) { return atomic_load(&waker->read_end.number); }

bool clinux_waker_drain(clinux_waker *waker) {
  char bytes[256];
  int number = atomic_load(&waker->read_end.number);
  if (!is_ours(waker, &waker->read_end, number)) return false;
  // Once: what is left makes the descriptor readable again.
  return recv(number, bytes, sizeof bytes, MSG_DONTWAIT) != 0;
}

bool clinux_waker_is_ringing(clinux_waker *waker) { return atomic_load(&waker->is_ringing); }
bool clinux_waker_take_ring(clinux_waker *waker) { return atomic_exchange(&waker->is_ringing, false); }

// The timer needs no memory, as a byte in a socket does, and has a number of its own.
static bool ring(clinux_waker *waker) {
  int timer = atomic_load(&waker->timer);
  struct epoll_event none = {0};
  if (timer < 0 || epoll_ctl(atomic_load(&waker->files), EPOLL_CTL_MOD, timer, &none) != 0) return false;
  // First: whoever sets the timer at the same time sees it afterwards, and sets it again.
  atomic_store(&waker->is_ringing, true);
  return clinux_set_timer(timer, 1);
}

bool clinux_waker_wake(clinux_waker *waker) {
  int number = atomic_load(&waker->write_end.number);
  if (!is_ours(waker, &waker->write_end, number)) return false;
  // poll(2) waits for the file, and when a byte has woken it, looks at what has the number by then.
  if (!is_ours(waker, &waker->read_end, atomic_load(&waker->read_end.number))) return ring(waker);
  char byte = 0;
  // EAGAIN: it is full, so it wakes anyway.
  if (send(number, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN || errno == EINTR) return true;
  return (errno == ENOBUFS || errno == ENOMEM) && ring(waker);
}
