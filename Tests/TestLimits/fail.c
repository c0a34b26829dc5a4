// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "limits_of_tests.h"

// The executable's own functions come before those of the C library, and of the sanitizers, which must see the calls.
#define SANITIZED(name) __attribute__((weak)) extern __typeof__(name) __interceptor_##name
#define REAL(name) (__interceptor_##name ? __interceptor_##name : (__typeof__(&name))dlsym(RTLD_NEXT, #name))
SANITIZED(sendmsg);
SANITIZED(connect);
SANITIZED(poll);

static _Thread_local struct failure {
  int error, times;
} sends, connects, polls;

void fail_next_send(int error, int times) { sends = (struct failure){error, times}; }
void fail_next_connect(int error, int times) { connects = (struct failure){error, times}; }
void fail_next_poll(int error, int times) { polls = (struct failure){error, times}; }

static int fails(struct failure *failure) {
  if (failure->times == 0) return 0;
  failure->times--;
  errno = failure->error;
  return 1;
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  return fails(&sends) ? -1 : REAL(sendmsg)(socket, message, flags);
}

int connect(int socket, const struct sockaddr *address, socklen_t size) {
  return fails(&connects) ? -1 : REAL(connect)(socket, address, size);
}

int poll(struct pollfd *files, nfds_t count, int milliseconds) {
  return fails(&polls) ? -1 : REAL(poll)(files, count, milliseconds);
}
