// SPDX-License-Identifier: Apache-2.0
// The process between a daemon and the command that elects it.
//
// It is the daemon's own program, started anew by posix_spawn(3), which costs the same however much memory the daemon has:
// before `main` it finds `CLEASE_VARIABLE`, runs the command that its arguments are, and is never a daemon. It has four
// descriptors: its standard input, which ends with the daemon; the command's output; the daemon's standard error; and
// `CLEASE_REPORTS`. SIGTERM has it end the command, and SIGUSR1 kill it, with all that it has started.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {  // for Swift that is built with interoperability with C++
#endif

/// The variable that makes a process a guard: its value is the process ID of the daemon, a colon, and the inode of the pipe
/// for the reports, without which a process is a daemon that somebody has started with the variable.
#define CLEASE_VARIABLE "DAEMONLIFECYCLE_LEASE_GUARD"
/// The descriptor to which it writes a report as it begins, and another when the command has ended by itself.
#define CLEASE_REPORTS 3
/// The status in the first report.
#define CLEASE_BEGUN -1
/// How long, in milliseconds, all have between SIGTERM and SIGKILL.
#define CLEASE_PATIENCE 2000

/// What became of the command.
typedef struct {
  int error;   ///< Why it could not be run: an errno value; else 0.
  int status;  ///< As of waitpid(2).
} clease_report;

/// 0 where a guard can be started; EPERM in a program with privileges that its caller may lack, since anybody could set the
/// variable; ENOSYS where the C library passes no arguments to what runs before `main`.
int clease_problem(void);

/// A descriptor that is readable when the process has ended; -1 and errno.
int clease_pidfd(pid_t process);

/// The file's inode; 0 where it is not open.
unsigned long long clease_inode(int fd);

/// Has a read(2) from the file fail with EAGAIN where it would wait.
static inline void clease_never_wait(int fd) { fcntl(fd, F_SETFL, O_NONBLOCK); }  // variadic

#ifdef __cplusplus
}
#endif
