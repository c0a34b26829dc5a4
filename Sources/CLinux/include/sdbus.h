// SPDX-License-Identifier: Apache-2.0
// sd-bus(3), which is found at run time in libsystemd.so.0: neither its headers nor a link to it are needed.
// Without variadic functions, which Swift can't call.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {  // for Swift that is built with interoperability with C++
#endif

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;

typedef struct {
  const char *name;
  const char *message;
  int _need_free;
} clinux_sdbus_error;

typedef int (*clinux_sdbus_handler)(sd_bus_message *message, void *userdata, clinux_sdbus_error *error);

// F(result, name without "sd_", arguments). All are in libsystemd since v240 or earlier.
#define CLINUX_SDBUS(F)                                                                              \
  F(int, bus_new, (sd_bus **))                                                                       \
  F(int, bus_open_system, (sd_bus **))                                                               \
  F(int, bus_open_user, (sd_bus **))                                                                 \
  F(int, bus_set_address, (sd_bus *, const char *))                                                  \
  F(int, bus_set_bus_client, (sd_bus *, int))                                                        \
  F(int, bus_start, (sd_bus *))                                                                      \
  F(void, bus_close, (sd_bus *))                                                                     \
  F(sd_bus *, bus_unref, (sd_bus *))                                                                 \
  F(int, bus_is_open, (sd_bus *))                                                                    \
  F(int, bus_is_ready, (sd_bus *))                                                                   \
  F(int, bus_get_fd, (sd_bus *))                                                                     \
  F(int, bus_get_events, (sd_bus *))                                                                 \
  F(int, bus_get_timeout, (sd_bus *, uint64_t *))                                                    \
  F(int, bus_process, (sd_bus *, sd_bus_message **))                                                 \
  F(int, bus_call_async, (sd_bus *, sd_bus_slot **, sd_bus_message *, clinux_sdbus_handler, void *, uint64_t)) \
  F(int, bus_add_match_async, (sd_bus *, sd_bus_slot **, const char *, clinux_sdbus_handler, clinux_sdbus_handler, void *)) \
  F(int, bus_message_new_method_call, (sd_bus *, sd_bus_message **, const char *, const char *, const char *, const char *)) \
  F(sd_bus_message *, bus_message_unref, (sd_bus_message *))                                         \
  F(int, bus_message_append_basic, (sd_bus_message *, char, const void *))                           \
  F(int, bus_message_read_basic, (sd_bus_message *, char, void *))                                   \
  F(int, bus_message_peek_type, (sd_bus_message *, char *, const char **))                           \
  F(int, bus_message_skip, (sd_bus_message *, const char *))                                         \
  F(int, bus_message_enter_container, (sd_bus_message *, char, const char *))                        \
  F(int, bus_message_exit_container, (sd_bus_message *))                                             \
  F(int, bus_message_is_method_error, (sd_bus_message *, const char *))                              \
  F(int, bus_message_get_errno, (sd_bus_message *))                                                  \
  F(const clinux_sdbus_error *, bus_message_get_error, (sd_bus_message *))                                 \
  F(const char *, bus_message_get_sender, (sd_bus_message *))                                        \
  F(const char *, bus_message_get_member, (sd_bus_message *))

/// The functions of one loaded libsystemd; none is NULL after `clinux_sdbus_load` has succeeded.
typedef struct {
#define CLINUX_SDBUS_FIELD(result, name, arguments) result (*name) arguments;
  CLINUX_SDBUS(CLINUX_SDBUS_FIELD)
#undef CLINUX_SDBUS_FIELD
} clinux_sdbus;

/// Loads `library` by dlopen(3), never to unload it again, and finds every function. NULL, or the reason for a failure:
/// a string that is valid until the thread's next call.
const char *clinux_sdbus_load(const char *library, clinux_sdbus *functions);

#ifdef __cplusplus
}
#endif
