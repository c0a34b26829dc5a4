// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <sys/syscall.h>

int clinux_start_thread(void *(*body)(void *), void *context) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, body, context);
  pthread_attr_destroy(&attributes);
  return error;
}

void clinux_name_this_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

bool clinux_is_main_thread(void) { return syscall(SYS_gettid) == getpid(); }

const char *clinux_program_name(void) { return program_invocation_short_name; }
