// SPDX-License-Identifier: Apache-2.0
// A bus that sends whatever an input says. It keeps sd-bus's promises to its callers: a handler is called with its
// message, not after its bus is gone, and never twice for a call; what it reads is of the type asked for, or an error.
#define _GNU_SOURCE
#include "fuzz.h"
#include "sdbus.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const uint8_t *next, *end;
static uint64_t time_now = 1000000;
static int objects;

static int sockets[2];

void fuzz_bus_begin(const uint8_t *bytes, size_t count) {
  next = bytes, end = bytes + count;
  for (int i = 0; i < 2; i++)
    if (!sockets[i]) sockets[i] = eventfd(0, EFD_CLOEXEC);
}

bool fuzz_bus_has_ended(void) { return next == end; }

uint8_t fuzz_bus_byte(void) { return next < end ? *next++ : 0; }

void fuzz_bus_wait(uint64_t time) { time_now += time; }

int fuzz_bus_objects(void) { return objects; }

uint64_t fuzz_bus_time(void) { return time_now; }

static void *made(size_t size) {
  void *object = calloc(1, size);
  if (!object) abort();
  objects++;
  return object;
}

static void gone(void *object) {
  objects--;
  free(object);
}

/// Now and then a call fails, as when there is no memory or no connection.
static int failure(void) {
  static const int numbers[] = {ENOMEM, ENOTCONN, ECONNRESET, EPIPE, ESHUTDOWN, EINVAL};
  uint8_t byte = fuzz_bus_byte();
  return byte < 250 ? 0 : -numbers[byte - 250];
}

// MARK: Buses and slots

struct sd_bus {
  bool is_ready, is_closed;
  sd_bus_slot *slots;
};

// A call under way, or a match. As slots that nobody asked for do, it lives until the reply or as long as the bus.
struct sd_bus_slot {
  sd_bus_slot *next;
  clinux_sdbus_handler handler, installed;  // of the reply or the signals; of the match's own reply, until it came
  void *context;
  bool is_match;
};

struct sd_bus_message {
  bool is_error;
  clinux_sdbus_error error;
  char arena[1024];  // texts that were read: valid as long as the message
  size_t used;
  // What was entered, and the values read of it; [0] is the message.
  struct {
    char type, contents;
    int count;
  } containers[64];
  int depth;
  char peeked;
};

static int is_bus(sd_bus **bus) {
  int result = failure();
  if (result == 0) *bus = made(sizeof **bus);
  return result;
}

int sd_bus_new(sd_bus **bus) { return is_bus(bus); }
int sd_bus_open_system(sd_bus **bus) { return is_bus(bus); }
int sd_bus_open_user(sd_bus **bus) { return is_bus(bus); }
int sd_bus_set_address(sd_bus *bus, const char *address) { return (void)bus, (void)address, failure(); }
int sd_bus_set_bus_client(sd_bus *bus, int is_client) { return (void)bus, (void)is_client, failure(); }
int sd_bus_start(sd_bus *bus) { return (void)bus, failure(); }
void sd_bus_close(sd_bus *bus) { bus->is_closed = true; }

sd_bus *sd_bus_unref(sd_bus *bus) {
  while (bus->slots) {
    sd_bus_slot *slot = bus->slots;
    bus->slots = slot->next;
    gone(slot);
  }
  gone(bus);
  return NULL;
}

int sd_bus_is_open(sd_bus *bus) { return !bus->is_closed; }
int sd_bus_is_ready(sd_bus *bus) { return bus->is_ready && !bus->is_closed; }

int sd_bus_get_fd(sd_bus *bus) {
  (void)bus;
  uint8_t byte = fuzz_bus_byte();
  return byte == 255 ? -ENOTCONN : sockets[byte & 1];
}

int sd_bus_get_events(sd_bus *bus) { return (void)bus, fuzz_bus_byte() == 255 ? -ENOTCONN : POLLIN; }

int sd_bus_get_timeout(sd_bus *bus, uint64_t *time) {
  (void)bus;
  uint8_t byte = fuzz_bus_byte();
  *time = byte & 1 ? UINT64_MAX : byte & 2 ? 0 : time_now + byte;
  return byte == 255 ? -ENOTCONN : 1;
}

static sd_bus_slot *add_slot(sd_bus *bus, sd_bus_slot **wanted, void *context) {
  // One that its caller keeps is not tried here.
  if (wanted) abort();
  sd_bus_slot *slot = made(sizeof *slot);
  *slot = (sd_bus_slot){.next = bus->slots, .context = context};
  return bus->slots = slot;
}

int sd_bus_call_async(sd_bus *bus, sd_bus_slot **slot, sd_bus_message *message, clinux_sdbus_handler handler,
                      void *context, uint64_t timeout) {
  (void)message, (void)timeout;
  if (bus->is_closed) return -ENOTCONN;
  int result = failure();
  if (result == 0) add_slot(bus, slot, context)->handler = handler;
  return result;
}

int sd_bus_add_match_async(sd_bus *bus, sd_bus_slot **slot, const char *rule, clinux_sdbus_handler handler,
                           clinux_sdbus_handler installed, void *context) {
  // A rule that was cut off would match nothing, or everything.
  if (rule[strlen(rule) - 1] != '\'') abort();
  if (bus->is_closed) return -ENOTCONN;
  int result = failure();
  if (result < 0) return result;
  sd_bus_slot *added = add_slot(bus, slot, context);
  added->handler = handler;
  added->installed = installed;
  added->is_match = true;
  return result;
}

// MARK: What comes

static sd_bus_slot **any_slot(sd_bus *bus) {
  int count = 0;
  for (sd_bus_slot *slot = bus->slots; slot; slot = slot->next) count++;
  if (count == 0) return NULL;
  int number = fuzz_bus_byte() % count;
  sd_bus_slot **place = &bus->slots;
  while (number-- > 0) place = &(*place)->next;
  return place;
}

static void deliver(sd_bus *bus, bool is_error) {
  static const char *const names[] = {
      "org.freedesktop.DBus.Error.UnknownObject",  "org.freedesktop.DBus.Error.InvalidArgs",
      "org.freedesktop.DBus.Error.AccessDenied",   "org.freedesktop.systemd1.AlreadySubscribed",
      "org.freedesktop.DBus.Error.NoReply",        "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
  };
  sd_bus_slot **place = any_slot(bus);
  if (!place) return;
  sd_bus_slot *slot = *place;
  clinux_sdbus_handler handler = slot->handler;
  if (slot->is_match && slot->installed && (is_error || fuzz_bus_byte() & 1)) {
    handler = slot->installed;
    slot->installed = NULL;
  } else if (slot->is_match) {
    is_error = false;  // a signal is none
  } else {
    *place = slot->next;  // it is answered
  }
  sd_bus_message *message = made(sizeof *message);
  if (is_error) {
    message->is_error = true;
    message->error = (clinux_sdbus_error){.name = names[fuzz_bus_byte() % 6], .message = fuzz_bus_byte() & 1 ? "No." : NULL};
  }
  handler(message, slot->context, NULL);
  if (!slot->is_match) gone(slot);
  gone(message);
}

int sd_bus_process(sd_bus *bus, sd_bus_message **message) {
  (void)message;
  uint8_t byte = fuzz_bus_byte();
  if (bus->is_closed || byte == 255) return -ECONNRESET;
  if (!bus->is_ready) return bus->is_ready = byte & 1;
  if (byte == 254) bus->is_closed = true;
  if (byte % 4 == 0) return 0;
  deliver(bus, byte % 4 == 1);
  return 1;
}

// MARK: Messages

int sd_bus_message_new_method_call(sd_bus *bus, sd_bus_message **message, const char *destination, const char *path,
                                   const char *interface, const char *member) {
  (void)bus;
  if (!*destination || *path != '/' || !*interface || !*member) abort();
  int result = failure();
  if (result == 0) *message = made(sizeof **message);
  return result;
}

sd_bus_message *sd_bus_message_unref(sd_bus_message *message) {
  gone(message);
  return NULL;
}

int sd_bus_message_append_basic(sd_bus_message *message, char type, const void *value) {
  (void)message;
  if (type != 's' || !value) abort();
  return failure();
}

/// A text that means something to somebody, or of the input's bytes.
static const char *text(sd_bus_message *message, bool is_path) {
  static const char *const words[] = {
      "ActiveState", "LoadState", "active", "inactive", "not-found", "loaded", "restart", "", ":1.1", ":1.2",
  };
  static const char *const paths[] = {"/", "/org/freedesktop/systemd1/job/7"};
  const size_t count = sizeof words / sizeof *words;
  uint8_t byte = fuzz_bus_byte();
  if (is_path) return paths[byte % 2];
  if (byte % (count + 1) < count) return words[byte % (count + 1)];
  size_t length = fuzz_bus_byte() % 64;
  if (message->used + length + 1 > sizeof message->arena) return "";
  char *copy = message->arena + message->used;
  for (size_t i = 0; i < length; i++) copy[i] = (char)(fuzz_bus_byte() % 255 + 1);
  copy[length] = 0;
  message->used += length + 1;
  return copy;
}

/// One value, if the message has one of this type here.
static int read_value(sd_bus_message *message, char type, void *value) {
  uint8_t byte = fuzz_bus_byte();
  if (byte >= 240) return byte & 1 ? -ENXIO : 0;
  switch (type) {
    case 's': *(const char **)value = text(message, false); break;
    case 'o': *(const char **)value = text(message, true); break;
    case 'b': *(int *)value = byte & 1; break;
    case 'u': *(uint32_t *)value = byte & 3; break;
    case 't': *(uint64_t *)value = byte & 1 ? UINT64_MAX : byte * 1000000ull; break;
    case 'h': *(int *)value = byte & 1 ? 2 : 1 << 20; break;  // an open one, or one that can't be duplicated
    default: abort();
  }
  return 1;
}

int sd_bus_message_read_basic(sd_bus_message *message, char type, void *value) {
  if (type != message->peeked) abort();
  if (next == end) return 0;
  message->containers[message->depth].count++;
  return read_value(message, type, value);
}

/// The type of the next value is the input's, as far as the container leaves a choice; 0 at its end.
static char next_type(sd_bus_message *message) {
  // Twice what requests read.
  static const char basic[] = "bbutssohi", any[] = "vvvvaabbutsshi";
  uint8_t byte = fuzz_bus_byte();
  int count = message->containers[message->depth].count;
  switch (message->containers[message->depth].type) {
    case 'v': return count ? 0 : byte < 200 ? basic[byte % (sizeof basic - 1)] : byte < 230 ? 'r' : 'a';
    case 'e': return count == 0 ? 's' : count == 1 ? 'v' : 0;
    case 'r': return count == 0 ? (byte & 1 ? 'u' : 's') : count == 1 ? 'o' : 0;
    case 'a': return byte % 4 == 0 ? 0 : message->containers[message->depth].contents;
    default: return count > 3 || byte % 4 == 0 ? 0 : any[byte % (sizeof any - 1)];
  }
}

int sd_bus_message_peek_type(sd_bus_message *message, char *type, const char **contents) {
  if (fuzz_bus_byte() >= 250) return -EBADMSG;
  *type = message->peeked = next_type(message);
  *contents = *type == 'a' ? (fuzz_bus_byte() % 4 ? "{sv}" : "s") : "";
  return *type != 0;
}

int sd_bus_message_enter_container(sd_bus_message *message, char type, const char *contents) {
  if (type != message->peeked) abort();
  if (fuzz_bus_byte() >= 250 || message->depth == 63) return -ENXIO;
  message->depth++;
  message->containers[message->depth].type = type;
  message->containers[message->depth].contents = *contents == '{' ? 'e' : *contents;
  message->containers[message->depth].count = 0;
  return 1;
}

int sd_bus_message_exit_container(sd_bus_message *message) {
  if (message->depth == 0) abort();
  message->depth--;
  message->containers[message->depth].count++;
  return fuzz_bus_byte() == 255 ? -EBUSY : 1;
}

int sd_bus_message_skip(sd_bus_message *message, const char *types) {
  if (*types != message->peeked || types[1]) abort();
  message->containers[message->depth].count++;
  return fuzz_bus_byte() == 255 ? -ENXIO : 1;
}

int sd_bus_message_is_method_error(sd_bus_message *message, const char *name) {
  (void)name;
  return message->is_error;
}

const clinux_sdbus_error *sd_bus_message_get_error(sd_bus_message *message) {
  return fuzz_bus_byte() == 255 ? NULL : &message->error;
}

int sd_bus_message_get_errno(sd_bus_message *message) {
  static const int numbers[] = {EACCES, EPERM, ETIMEDOUT, EIO};
  (void)message;
  return numbers[fuzz_bus_byte() % 4];
}

const char *sd_bus_message_get_sender(sd_bus_message *message) {
  static const char *const senders[] = {":1.1", ":1.2", "org.freedesktop.DBus", NULL};
  (void)message;
  return senders[fuzz_bus_byte() % 4];
}

const char *sd_bus_message_get_member(sd_bus_message *message) {
  static const char *const members[] = {
      "PrepareForSleep", "PropertiesChanged", NULL,
  };
  (void)message;
  return members[fuzz_bus_byte() % 3];
}
