// The one seam between this package and the C library: Swift code imports CLinux, never Glibc or Musl.
// It re-exports the headers used and adds what Swift cannot reach: a signal handler that is
// async-signal-safe, errno, and constants that are macros with casts.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "sdbus.h"

/// What has been recorded of one signal since it was last taken.
typedef struct {
  uint32_t count;     ///< Deliveries recorded, 1 or more.
  int32_t pid;        ///< Sender of the last one; 0 when the kernel sent it.
  uint32_t uid;       ///< The sender's real user.
  uint64_t sequence;  ///< Grows with each delivery of any signal: which came last.
} clinux_signal_record;

/// Claims `signo` for `wake_fd` (an eventfd) and installs the handler. 0, or an errno value:
/// EBUSY when another descriptor has claimed it, EALREADY when `keep_ignored` is set and the
/// disposition found is SIG_IGN (nothing is claimed then), else what sigaction(2) said.
int clinux_signal_listen(int signo, int wake_fd, bool keep_ignored);

/// Puts the disposition found by `clinux_signal_listen` back (unless someone has replaced the
/// handler meanwhile) and waits until no handler uses the descriptor any more, so that it can be closed.
void clinux_signal_unlisten(int signo);

/// Takes what was recorded of `signo`; false when nothing was.
bool clinux_signal_take(int signo, clinux_signal_record *record);

/// The number of deliveries of any signal that have begun to be recorded; waits a moment for those that
/// have begun to be through.
uint64_t clinux_signal_count(void);

// Macros in one C library, enumerations in another.
static const uint32_t CLINUX_EPOLLIN = EPOLLIN;
static const int CLINUX_TFD_TIMER_ABSTIME = TFD_TIMER_ABSTIME;

static inline int clinux_open(const char *path, int flags) { return open(path, flags); }  // variadic
static inline int clinux_duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }  // variadic
static inline int clinux_descriptor_flags(int fd) { return fcntl(fd, F_GETFD); }
static inline int clinux_errno(void) { return errno; }
static inline int clinux_sigrtmin(void) { return SIGRTMIN; }
static inline int clinux_sigrtmax(void) { return SIGRTMAX; }
/// pthread_setname_np(3) and gettid(2) need _GNU_SOURCE, which Swift's importer does not define.
void clinux_name_this_thread(const char *name);
bool clinux_is_main_thread(void);

/// One pointer a thread, for the executor to know its own threads; NULL on any other.
void *clinux_thread_tag(void);
void clinux_set_thread_tag(void *tag);
/// A flag of this thread, which taking clears.
void clinux_set_enqueue_hint(void);
bool clinux_take_enqueue_hint(void);
