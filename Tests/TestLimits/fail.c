// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#include "limits_of_tests.h"

// The executable's own functions come before those of the C library, and of the sanitizers, which must see the calls.
__attribute__((weak)) extern __typeof__(sendmsg) __interceptor_sendmsg;

static _Thread_local int error_of_sends, failing_sends;

void fail_next_send(int error, int times) {
  error_of_sends = error;
  failing_sends = times;
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  if (failing_sends > 0) {
    failing_sends--;
    errno = error_of_sends;
    return -1;
  }
  if (__interceptor_sendmsg) return __interceptor_sendmsg(socket, message, flags);
  return ((__typeof__(&sendmsg))dlsym(RTLD_NEXT, "sendmsg"))(socket, message, flags);
}
