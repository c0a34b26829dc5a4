// SPDX-License-Identifier: Apache-2.0
// What bus.c, which keeps the connection, and bus_matters.c, which asks and follows over it, share.
#pragma once

#include "CLinux.h"
#include "sdbus.h"

#include <stdatomic.h>

#define BUS "org.freedesktop.DBus"
#define PROPERTIES BUS ".Properties"
#define SYSTEMD "org.freedesktop.systemd1"
#define LOGIND "org.freedesktop.login1"
// systemd and logind take "self" for the unit, and the user, of whoever asks.
#define OWN_UNIT "/org/freedesktop/systemd1/unit/self"
#define OWN_USER "/org/freedesktop/login1/user/self"
#define LOGIND_PATH "/org/freedesktop/login1"

typedef struct item item;

/// The state of a question, or of the reading of what is followed.
typedef enum {
  IDLE,     // there is an answer, or no connection; next: ASKING
  ASKING,   // awaits the reply to `call`; next: IDLE, WAITING, or ASKING if something has outdated the answer
  WAITING,  // until `due`; next: ASKING, or IDLE when the connection is lost
} phase;

struct item {
  clinux_bus *bus;
  item *next;
  int number;
  clinux_bus_matter matter;
  char *argument;
  char *program;
  phase phase;
  bool is_outdated;  // only while ASKING
  bool is_held;      // a job that was asked for while it was not known whether there would be a connection
  uint64_t due;
  uint64_t delay;          // before the next attempt
  uint64_t deadline;       // of the call
  const char *member;      // what the call is about
  sd_bus_slot *call;       // the call under way, while ASKING
  sd_bus_slot *subscribe;  // the call besides
  sd_bus_slot *matches[4];
  int64_t last;     // what was said last; -1: nothing
  char *last_text;  // or NULL
};

/// Who has a well-known name. Any program may send any signal straight to another one, and the bus lets it through: so
/// only the owner is believed.
typedef struct {
  clinux_bus *bus;
  const char *name;
  char unique[256];  // empty when nobody has it, or it is not known yet
  sd_bus_slot *match;
  sd_bus_slot *call;
} service;

typedef enum {
  NEW,         // next: CONNECTING, LOST or ABSENT
  CONNECTING,  // sd-bus is at it; next: CONNECTED, or LOST when it failed or the deadline has passed
  CONNECTED,   // next: LOST
  LOST,        // until the next attempt; next: CONNECTING
  ABSENT,      // there is no libsystemd, nor will there be
  CLOSED,
} connection;

struct clinux_bus {
  clinux_bus_options options;
  char *library;
  char *address;  // NULL: the system bus, or the user's
  bool is_user_bus;
  clinux_bus_listener listener;
  clinux_sdbus sd;  // loaded before CONNECTING
  sd_bus *sd_bus;   // while CONNECTING or CONNECTED
  connection state;
  uint64_t since;     // CONNECTED; CONNECTING: the deadline; LOST: the next attempt
  uint64_t delay;     // before the attempt after the next loss
  bool absence_told;  // of the absence under way: once, however many attempts follow
  service services[2];
  item *items;
  int count;
  pid_t maker;  // in any other process this is a fork's copy, whose descriptors are the maker's too
  int poll;
  int timer;
  int watched;  // the socket in the epoll set; -1: none
  int failure;  // why a descriptor could not be had
  clinux_waker *waker;
  atomic_bool has_ended;
  clinux_bus_word reason;  // while LOST or ABSENT
  char reason_text[256];
};

static inline uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline char *copied(const char *text) {
  if (!text) return NULL;
  char *copy = strdup(text);
  if (!copy) abort();
  return copy;
}

static inline bool is_followed(const item *item) { return item->matter >= CLINUX_BUS_SLEEP; }

static inline void drop_slot(clinux_bus *bus, sd_bus_slot **slot) {
  if (*slot) bus->sd.bus_slot_unref(*slot);
  *slot = NULL;
}

/// Hands over what has come; whether that settles the question.
bool clinux_item_tell(item *item, const clinux_bus_word *word);
/// Asks the question, or reads what is so now. Something that is asked already is asked again after that.
void clinux_item_ask(item *item);
/// As `clinux_item_ask`, and the next attempts begin with the shortest delay.
void clinux_item_ask_anew(item *item);
/// Asks for the signals of what is followed, from its service's owner alone.
void clinux_item_follow(item *item);
