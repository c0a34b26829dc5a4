// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <stdatomic.h>

// How a thread in epoll_wait(2) is woken: a byte through a pair of connected sockets. Not an eventfd, since all of those
// share one inode: nobody could tell whether the number still names ours after other code of the process has closed it,
// and a signal handler that trusts the number writes into whatever file has it now. A socket has an inode of its own,
// fstat(2) is async-signal-safe, and send(2) refuses everything that is no socket. So at worst, in the instant between
// the two calls, one byte reaches another socket that has just been given the number.
struct clinux_waker {
  _Atomic int write_end;    // -1: none
  _Atomic int read_end;     // -1: none
  _Atomic uint64_t device;  // of the sockets' file system
  _Atomic uint64_t write_inode;
  _Atomic uint64_t read_inode;
  _Atomic int listener;  // the thread that waits on the other end; 0: none so far
  _Atomic bool lost;     // a descriptor was found not to be ours any more
};

static bool is_file(int fd, uint64_t device, uint64_t inode) {
  struct stat status;
  return fd >= 0 && fstat(fd, &status) == 0 && (uint64_t)status.st_dev == device &&
         (uint64_t)status.st_ino == inode;
}

static bool write_end_is_ours(clinux_waker *waker) {
  return is_file(atomic_load(&waker->write_end), atomic_load(&waker->device), atomic_load(&waker->write_inode));
}

static bool read_end_is_ours(clinux_waker *waker) {
  return is_file(atomic_load(&waker->read_end), atomic_load(&waker->device), atomic_load(&waker->read_inode));
}

clinux_waker *clinux_waker_make(void) {
  clinux_waker *waker = calloc(1, sizeof *waker);
  if (!waker) abort();
  atomic_store(&waker->write_end, -1);
  atomic_store(&waker->read_end, -1);
  return waker;
}

int clinux_waker_open(clinux_waker *waker) {
  if (atomic_load(&waker->write_end) >= 0) return 0;
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
  atomic_store(&waker->read_inode, read_end.st_ino);
  atomic_store(&waker->write_inode, write_end.st_ino);
  atomic_store(&waker->read_end, ends[0]);
  // Last: a handler that finds a number finds its inode too.
  atomic_store(&waker->write_end, ends[1]);
  return 0;
}

void clinux_waker_close(clinux_waker *waker) {
  if (write_end_is_ours(waker)) close(atomic_load(&waker->write_end));
  if (read_end_is_ours(waker)) close(atomic_load(&waker->read_end));
  atomic_store(&waker->write_end, -1);
  atomic_store(&waker->read_end, -1);
}

void clinux_waker_free(clinux_waker *waker) {
  clinux_waker_close(waker);
  free(waker);
}

int clinux_waker_read_end(clinux_waker *waker) { return atomic_load(&waker->read_end); }

bool clinux_waker_is_intact(clinux_waker *waker) { return write_end_is_ours(waker) && read_end_is_ours(waker); }

void clinux_waker_drain(clinux_waker *waker) {
  char bytes[256];
  // Once: what is left makes the descriptor readable again.
  recv(atomic_load(&waker->read_end), bytes, sizeof bytes, MSG_DONTWAIT);
}

void clinux_waker_listen(clinux_waker *waker) {
  // Asked for once a thread; a fork that goes on without exec listens to nothing.
  static _Thread_local int thread;
  if (thread == 0) thread = clinux_thread_id();
  // Relaxed: whoever listened in between has handed over by a lock.
  if (atomic_load_explicit(&waker->listener, memory_order_relaxed) != thread)
    atomic_store(&waker->listener, thread);
}

void clinux_waker_wake(clinux_waker *waker) {
  int fd = atomic_load(&waker->write_end);
  if (is_file(fd, atomic_load(&waker->device), atomic_load(&waker->write_inode))) {
    char byte = 0;
    // EAGAIN: it is full, so it wakes anyway.
    if (send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN || errno == EINTR) return;
  }
  clinux_waker_lost(waker);
}

void clinux_waker_lost(clinux_waker *waker) {
  // The thread may be in epoll_wait(2) on a set that is gone: only a signal gets it out. Once: where the kernel keeps
  // no more for signals (RLIMIT_SIGPENDING), a nudge can't be told from a signal, and would bring the next.
  if (!atomic_exchange(&waker->lost, true)) clinux_nudge(atomic_load(&waker->listener));
}

void clinux_waker_found(clinux_waker *waker) { atomic_store(&waker->lost, false); }
