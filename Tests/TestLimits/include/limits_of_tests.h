// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>
#include <sys/types.h>

/// Sets a soft limit of a running process, as prlimit(2) does, which Swift can't see. 0, or an errno value.
int limits_set_soft(pid_t pid, int resource, uint64_t soft);

/// Gives the calling thread descriptors of its own: the standard streams, and what it opens. 0, or an errno value.
int own_descriptors(void);

/// A terminal whose keys the caller presses, by writing: the descriptor for that, or -1 and errno; and its path.
int terminal_open(char *path, size_t size);

/// Has the kernel refuse poll(2) and ppoll(2) to all threads of this process from now on (seccomp(2)). 0, or an errno
/// value.
int refuse_poll(int error);

/// The next calls of sendmsg(2) on this thread fail with `error`, so many times.
void fail_next_send(int error, int times);

/// Queues a signal whose sender lies about who it is: rt_sigqueueinfo(2). 0, or an errno value.
int forge_signal(pid_t pid, int signo, int code, pid_t claimed_pid, uid_t claimed_uid);
