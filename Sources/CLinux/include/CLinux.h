// SPDX-License-Identifier: Apache-2.0
// The package's only way to the C library: Swift code imports CLinux, never Glibc or Musl. It re-exports the headers
// used, and adds what Swift can't have: an async-signal-safe signal handler, errno, variadic functions and macros.
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sdbus.h"

#ifdef __cplusplus
extern "C" {  // for Swift that is built with interoperability with C++
#endif

/// How the sender of a signal is known.
typedef enum {
  CLINUX_SENDER_KERNEL,   ///< The kernel sent it; there is no pid and no uid.
  CLINUX_SENDER_PROCESS,  ///< kill(2) and the like: pid and uid are the kernel's.
  CLINUX_SENDER_CLAIMED,  ///< Queued: pid and uid are the sender's claim. An impossible pid is reported as 0.
  CLINUX_SENDER_PASSED_ON,  ///< Not known, since another handler has called ours.
  CLINUX_SENDER_UNNAMED,  ///< Queued without a pid: a POSIX timer, or a sender that claims to be one.
  CLINUX_SENDER_DISPATCH,  ///< A DispatchSource received it, which does not know the sender.
} clinux_sender_origin;

/// The record of one signal since it was last taken.
typedef struct {
  uint32_t count;               ///< Deliveries recorded, 1 or more.
  clinux_sender_origin origin;  ///< The kernel, if one was its own; else of the last.
  int32_t pid;                  ///< -1: outside of this process's pid namespace, says the kernel.
  uint32_t uid;                 ///< The sender's real user.
  uint64_t sequence;            ///< Grows with each delivery of any signal.
} clinux_signal_record;

// MARK: wake.c: waking the listening thread

/// A waker of a thread that waits for descriptors.
typedef struct clinux_waker clinux_waker;

/// Makes a waker without descriptors.
clinux_waker *clinux_waker_make(void);
/// Makes its descriptors, unless it has them. 0, or an errno value.
int clinux_waker_open(clinux_waker *waker);
/// Closes its descriptors, if they are still sockets; it may be opened again.
void clinux_waker_close(clinux_waker *waker);
/// Leaves its descriptors to other code of the process, which has closed one of them; it may be opened again.
void clinux_waker_forget(clinux_waker *waker);
/// Closes its descriptors, and frees it.
void clinux_waker_free(clinux_waker *waker);
/// The descriptor that becomes readable on a wake-up; -1 without descriptors.
int clinux_waker_read_end(clinux_waker *waker);
/// Takes the wake-ups. False if there are none, or if the read end is no socket any more.
bool clinux_waker_drain(clinux_waker *waker);
/// Async-signal-safe.
void clinux_waker_wake(clinux_waker *waker);

// MARK: timer.c: timers on CLOCK_MONOTONIC as descriptors

/// A timer's descriptor, close-on-exec and non-blocking; -1 and errno.
int clinux_make_timer(void);
/// Makes it readable at that time. 0 disarms it, and makes it unreadable again. False if the number refers to no timer.
bool clinux_set_timer(int fd, int64_t nanoseconds);

// MARK: signals.c: the handler and its records

/// Claims `signo` for `waker` and installs the handler. 0, or an errno value: EBUSY when another waker has claimed it,
/// EALREADY when `keep_ignored` is set and the disposition found is SIG_IGN (nothing is claimed then), else that of
/// sigaction(2).
int clinux_signal_listen(int signo, clinux_waker *waker, bool keep_ignored);

/// Puts the disposition found by `clinux_signal_listen` back (unless the handler was replaced meanwhile) and waits
/// until no handler uses the waker any more, so that it can be freed. `signo` stays claimed, so that no other source
/// takes its record.
void clinux_signal_unlisten(int signo);

/// Ends the claim, after `clinux_signal_unlisten` and the last `clinux_signal_take`.
void clinux_signal_release(int signo);

/// From now on a write to a pipe or socket without a reader fails with EPIPE, if SIGPIPE has its default action, which
/// child processes get back by exec(3). As many calls of `clinux_heed_broken_pipes` undo this.
void clinux_ignore_broken_pipes(void);
void clinux_heed_broken_pipes(void);

/// Takes the record of `signo`; false when there is none.
bool clinux_signal_take(int signo, clinux_signal_record *record);

/// A signalfd(2) for these signals (bit 0 is signal 1), which need not be blocked. If `fd` is -1, it is a new one; else
/// it is `fd`, whose signals these become. -1 and errno.
int clinux_signal_descriptor(int fd, uint64_t signals);

/// Records the signals left in the descriptor: no handler was called for them, and now none will be.
void clinux_signal_drain(int fd);
/// Closes a signalfd, but no other file that has got the number.
bool clinux_close_signal_descriptor(int fd);

/// The address of the handler of `signo` now, and of this package's. 0 is SIG_DFL, 1 SIG_IGN. If signal(2) has put ours
/// back, the first function installs it again, with all its arguments.
uintptr_t clinux_signal_handler(int signo);
uintptr_t clinux_own_handler(void);

/// Puts back the handler that `clinux_signal_listen` has found, which may be Dispatch's, if ours is installed, and
/// keeps the claim. If it has found none, ours stays, and takes some of the signals from Dispatch.
void clinux_signal_yield(int signo);
/// Records `count` deliveries that a DispatchSource has received for `waker`, if `signo` is still claimed for it.
void clinux_signal_arrived(int signo, clinux_waker *waker, uint32_t count);

/// The number of deliveries of any signal so far; waits a moment for those that are being recorded.
uint64_t clinux_signal_count(void);

static inline int clinux_open(const char *path, int flags) { return open(path, flags); }  // variadic
/// openat(2), close-on-exec, without waiting for a FIFO's other end and without becoming a terminal's owner.
static inline int clinux_open_at(int directory, const char *name, int flags, mode_t mode) {
  return openat(directory, name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
}
/// The lowest free number that is at least `lowest`.
static inline int clinux_duplicate(int fd, int lowest) { return fcntl(fd, F_DUPFD_CLOEXEC, lowest); }  // variadic
static inline int clinux_descriptor_flags(int fd) { return fcntl(fd, F_GETFD); }
/// Whether a descriptor is open for writing; false too where it is not open.
static inline bool clinux_is_writable(int fd) {
  int flags = fcntl(fd, F_GETFL);  // variadic
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}
static inline int clinux_errno(void) { return errno; }
static inline int clinux_sigrtmin(void) { return SIGRTMIN; }
static inline int clinux_sigrtmax(void) { return SIGRTMAX; }
// MARK: thread.c: threads, whose type differs between C libraries

/// Starts a detached thread. 0, or an errno value.
int clinux_start_thread(void *(*body)(void *), void *context);
/// pthread_setname_np(3) and gettid(2) need _GNU_SOURCE, which Swift's importer does not define.
void clinux_name_this_thread(const char *name);
bool clinux_is_main_thread(void);
/// pthread_self(3), whose type differs between C libraries. Not reused while the thread lives, never 0.
static inline uintptr_t clinux_this_thread(void) { return (uintptr_t)pthread_self(); }
/// A thread's pool of references to be released later: how often it was opened, and the references.
struct clinux_release_pool {
  int depth;
  void *released;
};
extern _Thread_local struct clinux_release_pool clinux_release_pool_of_thread;
static inline struct clinux_release_pool *clinux_release_pool(void) {
  return &clinux_release_pool_of_thread;
}
/// sem_clockwait(3) until a time of CLOCK_MONOTONIC.
int clinux_wait_until(sem_t *semaphore, int64_t nanoseconds);
/// The name by which this program was started, without folders.
const char *clinux_program_name(void);

// MARK: write.c: writes that can't end the process, and standard output

/// write(2) whose failures are errors and nothing else: neither SIGPIPE (EPIPE) nor SIGXFSZ (EFBIG) is raised by it,
/// whatever the process does with these signals otherwise. The bytes written, or -1 and errno.
ssize_t clinux_write(int fd, const void *bytes, size_t count);

/// Makes the C library's stdout line buffered where it is no terminal. Never waits: while another thread holds the
/// stream, as one that writes to a full pipe does, the stream stays as it is.
void clinux_line_buffer_output(void);

// MARK: descriptors.c: descriptors between processes

/// The most descriptors of one message (SCM_MAX_FD of the kernel).
#define CLINUX_DESCRIPTORS_MAX 253

/// An empty memory file, close-on-exec; -1 and errno.
int clinux_memfd(const char *name);
/// Writes its bytes, and seals it: 0, or -1 and errno.
int clinux_fill_and_seal(int fd, const void *bytes, size_t count);
int clinux_seals(int fd);
static const int CLINUX_SEALS_FIXED = 0x0002 | 0x0004 | 0x0008;  // F_SEAL_SHRINK, _GROW, _WRITE; need _GNU_SOURCE
/// pipe2(2), close-on-exec.
int clinux_pipe(int ends[2]);

/// One sendmsg(2) to the socket of this name, as below; without SIGPIPE, again after EINTR. The bytes sent, or -1 and
/// errno.
ssize_t clinux_send_descriptors(int socket, const char *name, size_t name_count, bool abstract, const void *bytes,
                                size_t count, const int *descriptors, size_t descriptor_count);

/// The descriptors of a message, and its sender.
typedef struct {
  int32_t pid;  ///< The sender, by the kernel (SO_PASSCRED); 0 without that.
  size_t descriptor_count;
  int descriptors[CLINUX_DESCRIPTORS_MAX];  ///< Close-on-exec, owned by the caller.
} clinux_received;

/// One recvmsg(2) that does not wait. The length that the message had, which may exceed `capacity`, or -1
/// and errno.
ssize_t clinux_receive_descriptors(int socket, void *bytes, size_t capacity,
                                   clinux_received *received);

/// `count` bytes of `name`, without NUL; an abstract name without its leading '@'.
int clinux_bind_unix(int socket, const char *name, size_t count, bool abstract);

// Enumerations in glibc, macros in Musl.
static const int CLINUX_SOCK_STREAM = SOCK_STREAM;
static const int CLINUX_SOCK_DGRAM = SOCK_DGRAM;
static const int CLINUX_SOCK_SEQPACKET = SOCK_SEQPACKET;
static const int CLINUX_SOCK_CLOEXEC = SOCK_CLOEXEC;
static const int CLINUX_SOCK_NONBLOCK = SOCK_NONBLOCK;

static inline int clinux_set_close_on_exec(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC); }  // variadic
/// Whether this process has privileges that its caller may lack: setuid, setgid, file capabilities (AT_SECURE of
/// getauxval(3)).
bool clinux_is_secure(void);
/// environ(7), to be read once; empty in a process that is secure, as with secure_getenv(3).
char **clinux_environment(void);
/// A number of a process that no other gets until the machine restarts, as in LISTEN_PIDFDID: the inode of its pidfd,
/// on the kernel's file system for these (Linux 6.9). 0 where it can't be known.
uint64_t clinux_process_number(pid_t pid);
/// The hard limit of RLIMIT_NOFILE.
uint64_t clinux_descriptor_limit(void);

// MARK: pressure.c

/// Whether this is one of the kernel's pressure files (PSI), open for reading: 1, 0, or -1 and errno.
int clinux_is_pressure_file(int fd);

// MARK: dispatch.c

/// Has Dispatch make all the descriptors that it otherwise makes late: without a free descriptor that ends the process.
/// A thread of Dispatch's does it, and then calls `ring`.
void clinux_prepare_dispatch(void (*ring)(void *context), void *context);
/// The address of a function of Dispatch's; 0 without it.
uintptr_t clinux_dispatch_code(void);
/// The path of the program or library that has the code at an address; NULL where that is unknown, as in a program that
/// is linked statically. It may wait for the dynamic linker.
const char *clinux_file_of_code(uintptr_t address);
/// The signals (bit 0 is signal 1) that have a signalfd of their own, besides `own_descriptor`. Without /proc it
/// returns `otherwise`; without a free descriptor 0.
uint64_t clinux_signal_descriptors(int own_descriptor, uint64_t otherwise);

#ifdef __cplusplus
}
#endif
