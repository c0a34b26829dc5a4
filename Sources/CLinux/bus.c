// SPDX-License-Identifier: Apache-2.0
// A connection to a bus that is kept up: connects, serves, loses, waits, connects again.
#include "bus-private.h"

static bool is_fork(const clinux_bus *bus) { return getpid() != bus->maker; }

bool clinux_item_tell(item *item, const clinux_bus_word *word) {
  clinux_bus *bus = item->bus;
  if (atomic_load(&bus->has_ended)) {
    if (word->descriptor >= 0) close(word->descriptor);
    return true;
  }
  clinux_bus_word said = *word;
  if (!said.member) said.member = item->member;
  return bus->listener.hear(bus->listener.context, item->number, &said);
}

const char *clinux_bus_library_problem(const char *library) {
  clinux_sdbus functions;
  return clinux_sdbus_load(library, &functions);
}

// MARK: Connecting

static const char *place(const clinux_bus *bus) {
  return bus->address ? bus->address : bus->is_user_bus ? "the user bus" : "the system bus";
}

static void tell_absence(clinux_bus *bus) {
  bool is_new = !bus->absence_told;
  bus->absence_told = true;
  for (item *item = bus->items; item; item = item->next) {
    bool was_asked = item->phase == ASKING || item->is_held;
    item->phase = IDLE;
    item->is_outdated = item->is_held = false;
    bool hears = is_followed(item) || item->matter == CLINUX_BUS_STOP_TIMEOUT ? is_new : was_asked;
    if (hears) clinux_item_tell(item, &bus->reason);
  }
}

/// There is no connection, and why.
static void be_without(clinux_bus *bus, connection state, clinux_bus_outcome outcome, int error) {
  bus->state = state;
  bus->reason = (clinux_bus_word){.outcome = outcome, .error = error, .descriptor = -1, .text = bus->reason_text};
  if (state == LOST) {
    bus->since = now() + bus->delay;
    bus->delay = least(bus->delay * 2, bus->options.longest_delay);
  }
  tell_absence(bus);
}

static void connect_to(clinux_bus *bus) {
  const clinux_sdbus *sd = &bus->sd;
  if (bus->failure) {
    snprintf(bus->reason_text, sizeof bus->reason_text, "create the descriptors of a bus session");
    return be_without(bus, ABSENT, CLINUX_BUS_FAILED, bus->failure);
  }
  const char *problem = clinux_sdbus_load(bus->library, &bus->sd);
  if (problem) {
    snprintf(bus->reason_text, sizeof bus->reason_text, "%s can't be used (%s)", bus->library, problem);
    return be_without(bus, ABSENT, CLINUX_BUS_UNAVAILABLE, 0);
  }
  int result;
  if (bus->address) {
    result = sd->bus_new(&bus->sd_bus);
    if (result >= 0) result = sd->bus_set_address(bus->sd_bus, bus->address);
    if (result >= 0) result = sd->bus_set_bus_client(bus->sd_bus, 1);
    if (result >= 0) result = sd->bus_start(bus->sd_bus);
  } else {
    result = bus->is_user_bus ? sd->bus_open_user(&bus->sd_bus) : sd->bus_open_system(&bus->sd_bus);
  }
  if (result < 0) {
    if (bus->sd_bus) sd->bus_unref(bus->sd_bus);
    bus->sd_bus = NULL;
    snprintf(bus->reason_text, sizeof bus->reason_text, "%s can't be reached (%s)", place(bus), strerror(-result));
    return be_without(bus, LOST, CLINUX_BUS_UNAVAILABLE, -result);
  }
  bus->state = CONNECTING;
  bus->since = now() + bus->options.connect_timeout;
}

static void become_connected(clinux_bus *bus) {
  bus->state = CONNECTED;
  bus->since = now();
  bus->absence_told = false;
  for (item *item = bus->items; item; item = item->next) {
    clinux_item_follow(item);
    if (item->matter != CLINUX_BUS_JOB || item->is_held) clinux_item_ask_anew(item);
    item->is_held = false;
  }
}

/// sd-bus first stops, so that nothing is sent any more; then the slots go, then the bus, which they refer to.
static void disconnect(clinux_bus *bus) {
  const clinux_sdbus *sd = &bus->sd;
  if (!bus->sd_bus) return;
  if (bus->watched >= 0) epoll_ctl(bus->poll, EPOLL_CTL_DEL, bus->watched, NULL);
  bus->watched = -1;
  sd->bus_close(bus->sd_bus);
  for (item *item = bus->items; item; item = item->next) {
    drop_slot(bus, &item->call);
    drop_slot(bus, &item->subscribe);
    for (int i = 0; i < 4; i++) drop_slot(bus, &item->matches[i]);
  }
  for (int i = 0; i < 2; i++) {
    drop_slot(bus, &bus->services[i].match);
    drop_slot(bus, &bus->services[i].call);
    bus->services[i].unique[0] = 0;
  }
  sd->bus_unref(bus->sd_bus);
  bus->sd_bus = NULL;
}

static void lose(clinux_bus *bus, int error) {
  bool was_connected = bus->state == CONNECTED;
  // A bus that welcomes and hangs up again is asked ever less often.
  if (was_connected && now() - bus->since > bus->delay) bus->delay = bus->options.first_delay;
  disconnect(bus);
  if (was_connected) return be_without(bus, LOST, CLINUX_BUS_LOST, error);
  // With DynamicUser= the classic dbus-daemon hangs up only now (systemd#22737): absent, not lost.
  if (error == ETIMEDOUT)
    snprintf(bus->reason_text, sizeof bus->reason_text, "%s did not welcome this process in time", place(bus));
  else
    snprintf(bus->reason_text, sizeof bus->reason_text, "%s refused this process (%s)", place(bus), strerror(error));
  be_without(bus, LOST, CLINUX_BUS_UNAVAILABLE, error);
}

// MARK: The turn

/// Works until sd-bus has nothing more to do for now, or the others must have a turn.
static void advance(clinux_bus *bus) {
  for (int i = 0; i < bus->options.steps; i++) {
    if (atomic_load(&bus->has_ended) || (bus->state != CONNECTING && bus->state != CONNECTED)) return;
    int result = bus->sd.bus_process(bus->sd_bus, NULL);
    if (result < 0) return lose(bus, -result);
    if (bus->state == CONNECTING && bus->sd.bus_is_ready(bus->sd_bus) > 0) become_connected(bus);
    if (result > 0) continue;
    if (bus->state == CONNECTING && now() >= bus->since) lose(bus, ETIMEDOUT);
    return;
  }
  clinux_bus_wake(bus);
}

/// Waits for what sd-bus waits for, which may be another after each step. It may close its socket and open another one
/// under the same number: so the kernel is asked, not our memory.
static void watch(clinux_bus *bus) {
  int socket = bus->sd.bus_get_fd(bus->sd_bus), events = bus->sd.bus_get_events(bus->sd_bus);
  // It ended between two steps: the next step says so.
  if (socket < 0 || events < 0) return clinux_bus_wake(bus);
  if (bus->watched >= 0 && bus->watched != socket) epoll_ctl(bus->poll, EPOLL_CTL_DEL, bus->watched, NULL);
  // POLLIN and POLLOUT have the same values as EPOLLIN and EPOLLOUT.
  struct epoll_event event = {.events = (uint32_t)events, .data = {.fd = socket}};
  if (epoll_ctl(bus->poll, EPOLL_CTL_MOD, socket, &event) != 0) epoll_ctl(bus->poll, EPOLL_CTL_ADD, socket, &event);
  bus->watched = socket;
}

/// Arranges to be called again.
static void rest(clinux_bus *bus) {
  uint64_t deadline = bus->state == CONNECTING || bus->state == LOST ? bus->since : UINT64_MAX;
  if (bus->sd_bus) {
    watch(bus);
    uint64_t time = UINT64_MAX;
    if (bus->sd.bus_get_timeout(bus->sd_bus, &time) >= 0) deadline = least(deadline, time);
  }
  for (item *item = bus->items; item; item = item->next)
    if (item->phase == WAITING) deadline = least(deadline, item->due);
  // 0 would disarm it.
  uint64_t when = deadline == 0 ? 1 : least(deadline, INT64_MAX / 1000) * 1000;
  clinux_set_timer(bus->timer, deadline == UINT64_MAX ? 0 : (int64_t)when);
}

void clinux_bus_process(clinux_bus *bus) {
  if (is_fork(bus) || bus->state == CLOSED) return;
  // Before the work, so that a wake-up that comes meanwhile is not lost.
  uint64_t expirations;
  clinux_waker_drain(bus->waker);
  if (read(bus->timer, &expirations, 8) < 0) expirations = 0;
  if (bus->state == NEW || (bus->state == LOST && now() >= bus->since)) connect_to(bus);
  advance(bus);
  for (item *item = bus->items; item; item = item->next)
    if (item->phase == WAITING && item->due <= now()) clinux_item_ask(item);
  rest(bus);
}

void clinux_bus_ask(clinux_bus *bus, int number) {
  if (is_fork(bus)) return;
  for (item *item = bus->items; item; item = item->next) {
    if (item->number != number) continue;
    bool is_open = bus->state == NEW || bus->state == CONNECTING;
    // Other questions are asked on the next connection anyway.
    if (bus->state == CONNECTED)
      clinux_item_ask_anew(item);
    else if (is_open)
      item->is_held = true;
    else if (item->matter == CLINUX_BUS_JOB)
      clinux_item_tell(item, &bus->reason);
  }
}

// MARK: Its life

static bool poll_in(clinux_bus *bus, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
  return descriptor >= 0 && epoll_ctl(bus->poll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

clinux_bus *clinux_bus_make(const clinux_bus_options *options, const char *library, const char *address,
                            bool is_user_bus, clinux_bus_listener listener) {
  clinux_bus *bus = calloc(1, sizeof *bus);
  if (!bus) abort();
  bus->options = *options;
  bus->library = copied(library);
  bus->address = copied(address);
  bus->is_user_bus = is_user_bus;
  bus->listener = listener;
  // A delay of nothing would be a loop that never rests.
  if (bus->options.first_delay < 1000) bus->options.first_delay = 1000;
  if (bus->options.longest_delay < bus->options.first_delay) bus->options.longest_delay = bus->options.first_delay;
  bus->delay = bus->options.first_delay;
  bus->maker = getpid();
  bus->watched = -1;
  bus->services[0] = (service){.bus = bus, .name = SYSTEMD};
  bus->services[1] = (service){.bus = bus, .name = LOGIND};
  bus->poll = epoll_create1(EPOLL_CLOEXEC);
  bus->timer = clinux_make_timer();
  bus->waker = clinux_waker_make();
  bool is_complete = clinux_waker_open(bus->waker) == 0 && bus->poll >= 0 && poll_in(bus, bus->timer) &&
                     poll_in(bus, clinux_waker_read_end(bus->waker));
  if (!is_complete) bus->failure = errno ? errno : EMFILE;
  return bus;
}

int clinux_bus_add(clinux_bus *bus, clinux_bus_matter matter, const char *argument, const char *program) {
  item *added = calloc(1, sizeof *added);
  if (!added) abort();
  added->bus = bus;
  added->number = bus->count++;
  added->matter = matter;
  added->argument = copied(argument);
  added->program = copied(program);
  // What is so at first need not be said.
  added->last = matter == CLINUX_BUS_SLEEP || matter == CLINUX_BUS_SHUTDOWN ? 0 : -1;
  item **end = &bus->items;
  while (*end) end = &(*end)->next;
  *end = added;
  return added->number;
}

int clinux_bus_descriptor(const clinux_bus *bus) { return bus->poll; }

void clinux_bus_wake(clinux_bus *bus) {
  if (!is_fork(bus)) clinux_waker_wake(bus->waker);
}

void clinux_bus_end(clinux_bus *bus) { atomic_store(&bus->has_ended, true); }

void clinux_bus_close(clinux_bus *bus) {
  clinux_bus_end(bus);
  // In a fork sd-bus's object is a copy that shares the parent's socket: it is left alone.
  if (is_fork(bus)) return;
  disconnect(bus);
  bus->state = CLOSED;
  clinux_set_timer(bus->timer, 0);
}

void clinux_bus_free(clinux_bus *bus) {
  clinux_bus_close(bus);
  while (bus->items) {
    item *first = bus->items;
    bus->items = first->next;
    free(first->argument);
    free(first->program);
    free(first->last_text);
    free(first);
  }
  if (bus->poll >= 0) close(bus->poll);
  if (bus->timer >= 0) close(bus->timer);
  clinux_waker_free(bus->waker);
  free(bus->library);
  free(bus->address);
  free(bus);
}
