// SPDX-License-Identifier: Apache-2.0
// sd-bus as it is found at run time in libsystemd.so.0: neither its headers nor a link to it are needed.
// The declarations follow sd-bus(3).
#pragma once

#include <dlfcn.h>
#include <stdint.h>

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;

typedef struct {
  const char *name;
  const char *message;
  int _need_free;
} sd_bus_error;

typedef int (*sd_bus_message_handler_t)(sd_bus_message *message, void *userdata, sd_bus_error *error);

// F(result, name without "sd_", arguments). All are in libsystemd since v240 or earlier.
#define CLINUX_SDBUS(F)                                                                              \
  F(int, bus_new, (sd_bus **))                                                                           \
  F(int, bus_open_system, (sd_bus **))                                                                   \
  F(int, bus_open_user, (sd_bus **))                                                                     \
  F(int, bus_set_address, (sd_bus *, const char *))                                                      \
  F(int, bus_set_bus_client, (sd_bus *, int))                                                            \
  F(int, bus_start, (sd_bus *))                                                                          \
  F(void, bus_close, (sd_bus *))                                                                         \
  F(sd_bus *, bus_unref, (sd_bus *))                                                                     \
  F(int, bus_is_open, (sd_bus *))                                                                        \
  F(int, bus_is_ready, (sd_bus *))                                                                       \
  F(int, bus_get_fd, (sd_bus *))                                                                         \
  F(int, bus_get_events, (sd_bus *))                                                                     \
  F(int, bus_get_timeout, (sd_bus *, uint64_t *))                                                        \
  F(int, bus_process, (sd_bus *, sd_bus_message **))                                                     \
  F(int, bus_call_async, (sd_bus *, sd_bus_slot **, sd_bus_message *, sd_bus_message_handler_t, void *, uint64_t)) \
  F(int, bus_add_match_async, (sd_bus *, sd_bus_slot **, const char *, sd_bus_message_handler_t, sd_bus_message_handler_t, void *)) \
  F(sd_bus_slot *, bus_slot_unref, (sd_bus_slot *))                                                      \
  F(int, bus_message_new_method_call, (sd_bus *, sd_bus_message **, const char *, const char *, const char *, const char *)) \
  F(sd_bus_message *, bus_message_unref, (sd_bus_message *))                                             \
  F(int, bus_message_append_basic, (sd_bus_message *, char, const void *))                               \
  F(int, bus_message_read_basic, (sd_bus_message *, char, void *))                                       \
  F(int, bus_message_read, (sd_bus_message *, const char *, ...))                                        \
  F(int, bus_message_skip, (sd_bus_message *, const char *))                                             \
  F(int, bus_message_at_end, (sd_bus_message *, int))                                                    \
  F(int, bus_message_enter_container, (sd_bus_message *, char, const char *))                            \
  F(int, bus_message_exit_container, (sd_bus_message *))                                                 \
  F(int, bus_message_is_method_error, (sd_bus_message *, const char *))                                  \
  F(int, bus_message_get_errno, (sd_bus_message *))                                                      \
  F(const sd_bus_error *, bus_message_get_error, (sd_bus_message *))                                     \
  F(const char *, bus_message_get_sender, (sd_bus_message *))                                            \
  F(const char *, bus_message_get_member, (sd_bus_message *))

/// The functions of one loaded libsystemd; none is NULL after `clinux_sdbus_load` has succeeded.
typedef struct {
#define CLINUX_SDBUS_FIELD(result, name, arguments) result (*name) arguments;
  CLINUX_SDBUS(CLINUX_SDBUS_FIELD)
#undef CLINUX_SDBUS_FIELD
} clinux_sdbus;

/// Loads `library` by dlopen(3), never to unload it again, and looks every function up. NULL, or why it
/// could not be: a string that is valid until the thread's next call.
const char *clinux_sdbus_load(const char *library, clinux_sdbus *functions);
