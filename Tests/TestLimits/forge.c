// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "limits_of_tests.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int forge_signal(pid_t pid, int signo, int code, pid_t claimed_pid, uid_t claimed_uid) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = signo;
  info.si_code = code;
  info.si_pid = claimed_pid;
  info.si_uid = claimed_uid;
  return syscall(SYS_rt_sigqueueinfo, pid, signo, &info) == 0 ? 0 : errno;
}
