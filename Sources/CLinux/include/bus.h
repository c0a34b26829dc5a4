// SPDX-License-Identifier: Apache-2.0
// What a daemon asks systemd and logind over D-Bus, and what it follows there; through sd-bus, which is found at run time
// in libsystemd.so.0. In C, since it is in every daemon, and much smaller than in Swift.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {  // for Swift that is built with interoperability with C++
#endif

/// Keeps a connection to a bus up. Nothing here waits.
///
/// One thread at a time may be in the functions that take one, except for `clinux_bus_wake` and `clinux_bus_end`, which
/// are for any. In a fork all of them do nothing.
typedef struct clinux_bus clinux_bus;

/// What can be asked and followed.
typedef enum {
  // Questions: asked on each connection, of each new owner of the service, and when `clinux_bus_ask` says so; again and
  // again until the answer settles it.
  CLINUX_BUS_STOP_TIMEOUT,  ///< `TimeoutStopSec=` of the own unit; `number`: µs, UINT64_MAX is infinity.
  CLINUX_BUS_DELAY_MAX,     ///< How long a delay lock can hold the machine back; `number`: µs.
  CLINUX_BUS_LOCK,          ///< A delay lock; the argument: "sleep" or "shutdown"; `descriptor` is the receiver's.
  // Asked only when `clinux_bus_ask` says so, and once.
  CLINUX_BUS_JOB,  ///< What systemd does with the own unit; `text`: the job's type, NULL where there is no job.
  // Followed: what is so now, then each change, without repeats, whatever restarts meanwhile.
  CLINUX_BUS_SLEEP,     ///< `number`: 1 when the machine is about to sleep, 0 when it has woken up. Awake at first.
  CLINUX_BUS_SHUTDOWN,  ///< `number`: 1 and in `text` how, if that is known; 0 when it is called off. None at first.
  CLINUX_BUS_UNIT,      ///< A unit's `ActiveState` in `text`; the argument: its object's path.
  CLINUX_BUS_SESSION,   ///< The user's session; `number`: a `clinux_bus_session`.
} clinux_bus_matter;

typedef enum {
  CLINUX_SESSION_NONE,      ///< Logged in without a session that is shown, as a user who lingers.
  CLINUX_SESSION_ACTIVE,    ///< Active and not locked.
  CLINUX_SESSION_INACTIVE,  ///< Another session is in front.
  CLINUX_SESSION_LOCKED,
} clinux_bus_session;

typedef enum {
  CLINUX_BUS_ANSWERED,
  CLINUX_BUS_UNAVAILABLE,   ///< There is no bus; `text`: what is missing.
  CLINUX_BUS_LOST,          ///< The connection is lost; `error`.
  CLINUX_BUS_REFUSED,       ///< The other side's error: `name`, `text`, `error`.
  CLINUX_BUS_LATE,          ///< Not answered in time.
  CLINUX_BUS_MALFORMED,     ///< Not of the type that the interface says.
  CLINUX_BUS_UNKNOWN_UNIT,  ///< There is no such unit.
  CLINUX_BUS_FAILED,        ///< A call into libsystemd or the kernel failed; `error`.
} clinux_bus_outcome;

/// An answer, or why there is none. What it points to is valid during the call that brings it.
typedef struct {
  clinux_bus_outcome outcome;
  int error;           ///< An errno value, or 0.
  int descriptor;      ///< -1: none.
  uint64_t number;
  const char *text;    ///< Or NULL.
  const char *name;    ///< Of the other side's error, or NULL.
  const char *member;  ///< The property, method or signal that it is about, or NULL.
} clinux_bus_word;

/// Called by `clinux_bus_process` alone, on its thread. Not after `clinux_bus_end`.
typedef struct {
  void *context;
  /// Whether an answer to this question is still of use; asked before each attempt.
  bool (*is_wanted)(void *context, int item);
  /// Whether that settles the question. For what is followed it makes no difference.
  bool (*hear)(void *context, int item, const clinux_bus_word *word);
} clinux_bus_listener;

typedef struct {
  uint64_t first_delay;      ///< Before the first attempt to connect again, in µs; it doubles with each.
  uint64_t longest_delay;    ///< Between two attempts, in µs.
  uint64_t connect_timeout;  ///< How long the bus may take to welcome us, in µs.
  uint64_t call_timeout;     ///< How long an answer may take, in µs.
  int steps;                 ///< Messages handled at once, so that a storm of signals leaves room for other work.
} clinux_bus_options;

/// `library` is for dlopen(3); without an address it is the system bus, or the user's.
clinux_bus *clinux_bus_make(const clinux_bus_options *options, const char *library, const char *address,
                            bool is_user_bus, clinux_bus_listener listener);
/// Closes the connection, if it is still open.
void clinux_bus_free(clinux_bus *bus);

/// Readable when `clinux_bus_process` has something to do; the same number for its whole life, -1 when none was left.
/// Level-triggered; to be polled, never read.
int clinux_bus_descriptor(const clinux_bus *bus);
/// Makes the descriptor readable.
void clinux_bus_wake(clinux_bus *bus);

/// Adds something to ask or to follow, before the bus is first processed. Its number, which counts from 0. `program` is
/// who wants a delay lock.
int clinux_bus_add(clinux_bus *bus, clinux_bus_matter matter, const char *argument, const char *program);
/// Asks now, or again as soon as the answer that is awaited has come; once there is a connection, if one is being made.
void clinux_bus_ask(clinux_bus *bus, int item);
/// Does what can be done at once, and brings what has come. The first call loads the library and connects.
void clinux_bus_process(clinux_bus *bus);
/// Nothing is brought from now on.
void clinux_bus_end(clinux_bus *bus);
/// Closes the connection for good.
void clinux_bus_close(clinux_bus *bus);

/// Whether the library is there, and has all that is needed: NULL, or why not, until the thread's next call.
const char *clinux_bus_library_problem(const char *library);

#ifdef __cplusplus
}
#endif
