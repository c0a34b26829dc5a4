// SPDX-License-Identifier: Apache-2.0
// What is asked of systemd and logind, how their answers are read, and whose signals are believed.
#include "bus-private.h"

static service *service_of(item *item) {
  bool is_systemd = item->matter == CLINUX_BUS_STOP_TIMEOUT || item->matter == CLINUX_BUS_JOB ||
                    item->matter == CLINUX_BUS_UNIT;
  return &item->bus->services[is_systemd ? 0 : 1];
}

// MARK: What is brought

/// The call under way has come to its end.
static void conclude(item *item, const clinux_bus_word *word) {
  item->phase = IDLE;
  bool was_outdated = item->is_outdated;
  item->is_outdated = false;
  bool is_settled = clinux_item_tell(item, word) || is_followed(item) || item->matter == CLINUX_BUS_JOB;
  if (was_outdated) return clinux_item_ask(item);
  if (is_settled) return;
  item->phase = WAITING;
  item->due = now() + item->delay;
  item->delay = least(item->delay * 2, item->bus->options.longest_delay);
}

static void conclude_with(item *item, clinux_bus_outcome outcome, int error) {
  clinux_bus_word word = {.outcome = outcome, .error = error, .descriptor = -1};
  conclude(item, &word);
}

/// Brings a state of what is followed, unless it is the one that was brought last.
static void note(item *item, int64_t number, const char *text, bool is_reply) {
  clinux_bus_word word = {.descriptor = -1, .number = (uint64_t)number, .text = text};
  // How a shutdown is done is known from the first announcement, if at all.
  bool tells_text = item->matter == CLINUX_BUS_UNIT;
  bool is_repeat =
      item->last == number && (!tells_text || (item->last_text && strcmp(item->last_text, text) == 0));
  if (tells_text && !is_repeat) {
    free(item->last_text);
    item->last_text = copied(text);
  }
  item->last = number;
  if (is_repeat) {
    if (!is_reply) return;
    bool was_outdated = item->is_outdated;
    item->phase = IDLE;
    item->is_outdated = false;
    if (was_outdated) clinux_item_ask(item);
  } else if (is_reply) {
    conclude(item, &word);
  } else {
    clinux_item_tell(item, &word);
  }
}

// MARK: Calls

static void fail(item *item, int result) {
  bool is_lost = result == -ENOTCONN || result == -ECONNRESET || result == -EPIPE || result == -ESHUTDOWN;
  conclude_with(item, is_lost ? CLINUX_BUS_LOST : CLINUX_BUS_FAILED, -result);
}

/// The error that the message is: false when it is none.
static bool is_error(item *item, sd_bus_message *message, clinux_bus_word *word) {
  const clinux_sdbus *sd = &item->bus->sd;
  if (sd->bus_message_is_method_error(message, NULL) <= 0) return false;
  const sd_bus_error *error = sd->bus_message_get_error(message);
  *word = (clinux_bus_word){.outcome = CLINUX_BUS_REFUSED, .descriptor = -1};
  word->error = sd->bus_message_get_errno(message);
  if (error) {
    word->name = error->name;
    word->text = error->message;
  }
  // sd-bus answers for a peer that is gone, and for one that is late.
  if (sd->bus_is_open(item->bus->sd_bus) <= 0) {
    word->outcome = CLINUX_BUS_LOST;
    word->error = ECONNRESET;
  } else if (word->error == ETIMEDOUT && now() >= item->deadline) {
    word->outcome = CLINUX_BUS_LATE;
  }
  return true;
}

/// The error says that what was asked about is not there any more.
static bool is_gone(const clinux_bus_word *word) {
  const char *name = word->name ? word->name : "";
  return strcmp(name, BUS ".Error.UnknownObject") == 0 || strcmp(name, BUS ".Error.UnknownMethod") == 0;
}

/// A call with texts as its arguments, the last of them NULL. A negative errno value where it can't be sent.
static int send_call(clinux_bus *bus, sd_bus_slot **slot, const char *destination, const char *path,
                     const char *interface, const char *member, const char *const *texts,
                     sd_bus_message_handler_t handler, void *context) {
  const clinux_sdbus *sd = &bus->sd;
  sd_bus_message *message = NULL;
  int result = sd->bus_message_new_method_call(bus->sd_bus, &message, destination, path, interface, member);
  for (; result >= 0 && *texts; texts++) result = sd->bus_message_append_basic(message, 's', *texts);
  drop_slot(bus, slot);
  if (result >= 0)
    result = sd->bus_call_async(bus->sd_bus, slot, message, handler, context, bus->options.call_timeout);
  // sd-bus holds a reference of its own while the message is queued.
  if (message) sd->bus_message_unref(message);
  return result;
}

/// Sends the item's call.
static void call(item *item, const char *path, const char *interface, const char *member,
                 const char *const *texts, sd_bus_message_handler_t handler) {
  item->deadline = now() + item->bus->options.call_timeout;
  int result = send_call(item->bus, &item->call, service_of(item)->name, path, interface, member, texts, handler, item);
  if (result < 0) fail(item, result);
}

static void get(item *item, const char *path, const char *interface, const char *property,
                sd_bus_message_handler_t handler) {
  item->member = property;
  call(item, path, PROPERTIES, "Get", (const char *[]){interface, property, NULL}, handler);
}

static void get_all(item *item, const char *path, const char *interface, sd_bus_message_handler_t handler) {
  call(item, path, PROPERTIES, "GetAll", (const char *[]){interface, NULL}, handler);
}

/// The reply to the call is here: false when it is an error, which has been seen to.
static bool has_reply(item *item, sd_bus_message *reply) {
  // sd-bus holds a reference while it calls back.
  drop_slot(item->bus, &item->call);
  clinux_bus_word word;
  if (!is_error(item, reply, &word)) return true;
  conclude(item, &word);
  return false;
}

/// Reads the whole of a message that is one variant; false when it is something else.
static bool read_variant(item *item, sd_bus_message *message, const char *type, void *value, void *second) {
  const clinux_sdbus *sd = &item->bus->sd;
  return sd->bus_message_read(message, "v", type, value, second) > 0 && sd->bus_message_at_end(message, 1) > 0;
}

static int on_number(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  if (!has_reply(item, reply)) return 0;
  clinux_bus_word word = {.outcome = CLINUX_BUS_ANSWERED, .descriptor = -1};
  if (!read_variant(item, reply, "t", &word.number, NULL)) word.outcome = CLINUX_BUS_MALFORMED;
  conclude(item, &word);
  return 0;
}

static int on_flag(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  if (!has_reply(item, reply)) return 0;
  int flag = 0;
  if (read_variant(item, reply, "b", &flag, NULL))
    note(item, flag, NULL, true);
  else
    conclude_with(item, CLINUX_BUS_MALFORMED, 0);
  return 0;
}

static int on_lock(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  if (!has_reply(item, reply)) return 0;
  const clinux_sdbus *sd = &item->bus->sd;
  clinux_bus_word word = {.outcome = CLINUX_BUS_MALFORMED, .descriptor = -1};
  int descriptor;
  if (sd->bus_message_read(reply, "h", &descriptor) > 0 && sd->bus_message_at_end(reply, 1) > 0) {
    // The one in the message is closed with the message.
    word.descriptor = clinux_duplicate(descriptor, 3);
    word.error = errno;
    word.outcome = word.descriptor < 0 ? CLINUX_BUS_FAILED : CLINUX_BUS_ANSWERED;
  }
  conclude(item, &word);
  return 0;
}

// MARK: The job

static int on_job_type(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  drop_slot(item->bus, &item->call);
  clinux_bus_word word;
  if (is_error(item, reply, &word)) {
    // Between the two questions.
    if (is_gone(&word))
      word = (clinux_bus_word){.outcome = CLINUX_BUS_ANSWERED, .descriptor = -1};
  } else {
    word = (clinux_bus_word){.outcome = CLINUX_BUS_ANSWERED, .descriptor = -1};
    if (!read_variant(item, reply, "s", &word.text, NULL)) word.outcome = CLINUX_BUS_MALFORMED;
  }
  conclude(item, &word);
  return 0;
}

static int on_job(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  if (!has_reply(item, reply)) return 0;
  uint32_t id = 0;
  const char *path = NULL;
  if (!read_variant(item, reply, "(uo)", &id, &path))
    conclude_with(item, CLINUX_BUS_MALFORMED, 0);
  else if (id == 0)
    conclude_with(item, CLINUX_BUS_ANSWERED, 0);
  else
    get(item, path, SYSTEMD ".Job", "JobType", on_job_type);
  return 0;
}

// MARK: Properties

/// A property to be found in a dictionary of them, and what its value is read into; of a value of no type only is noted
/// that it is there.
typedef struct {
  const char *name;
  const char *type;
  void *value;
  void *second;
  bool is_there;
} property;

static property *find(property *properties, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(properties[i].name, name) == 0) return &properties[i];
  return NULL;
}

/// False when it is no dictionary of properties, or the value of one that was looked for has another type.
static bool read_properties(const clinux_sdbus *sd, sd_bus_message *message, property *properties, int count) {
  if (sd->bus_message_enter_container(message, 'a', "{sv}") <= 0) return false;
  int result;
  while ((result = sd->bus_message_enter_container(message, 'e', "sv")) > 0) {
    const char *name;
    if (sd->bus_message_read_basic(message, 's', &name) <= 0) return false;
    property *found = find(properties, count, name);
    if (found) found->is_there = true;
    result = found && found->type ? sd->bus_message_read(message, "v", found->type, found->value, found->second)
                                  : sd->bus_message_skip(message, "v");
    if (result < 0 || sd->bus_message_exit_container(message) < 0) return false;
  }
  return result == 0 && sd->bus_message_exit_container(message) >= 0;
}

/// What a PropertiesChanged is about: each property that it brings is read, and each that it only names is noted in
/// `is_named`. False when it is malformed.
static bool read_changes(const clinux_sdbus *sd, sd_bus_message *message, property *properties, int count,
                         bool *is_named) {
  const char *name;
  if (sd->bus_message_read_basic(message, 's', &name) <= 0) return false;
  if (!read_properties(sd, message, properties, count)) return false;
  if (sd->bus_message_enter_container(message, 'a', "s") < 0) return false;
  while (sd->bus_message_read_basic(message, 's', &name) > 0)
    if (find(properties, count, name)) *is_named = true;
  return true;
}

// MARK: A unit

static int on_unit(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  if (!has_reply(item, reply)) return 0;
  const char *load = NULL, *active = NULL;
  property wanted[] = {{"LoadState", "s", &load, NULL, false}, {"ActiveState", "s", &active, NULL, false}};
  if (!read_properties(&item->bus->sd, reply, wanted, 2) || !load || !active)
    conclude_with(item, CLINUX_BUS_MALFORMED, 0);
  else if (strcmp(load, "not-found") == 0 && !item->last_text)
    conclude_with(item, CLINUX_BUS_UNKNOWN_UNIT, 0);
  else
    note(item, 0, active, true);  // one that is gone, as a transient unit may be, is inactive
  return 0;
}

static int on_subscribed(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  drop_slot(item->bus, &item->subscribe);
  clinux_bus_word word;
  if (!is_error(item, reply, &word)) return 0;
  if (word.name && strcmp(word.name, SYSTEMD ".AlreadySubscribed") == 0) return 0;
  word.member = "Subscribe";
  clinux_item_tell(item, &word);
  return 0;
}

static void read_unit(item *item) {
  // Without it systemd sends almost no signals. Asking again is allowed, and needed after it was restarted.
  item->member = "ActiveState";
  static const char *const nothing[] = {NULL};
  send_call(item->bus, &item->subscribe, SYSTEMD, "/org/freedesktop/systemd1", SYSTEMD ".Manager", "Subscribe",
            nothing, on_subscribed, item);
  get_all(item, item->argument, SYSTEMD ".Unit", on_unit);
}

static void unit_changed(item *item, sd_bus_message *signal) {
  const char *active = NULL;
  bool is_named = false;
  property wanted = {"ActiveState", "s", &active, NULL, false};
  if (!read_changes(&item->bus->sd, signal, &wanted, 1, &is_named)) {
    clinux_bus_word word = {.outcome = CLINUX_BUS_MALFORMED, .descriptor = -1, .member = "PropertiesChanged"};
    clinux_item_tell(item, &word);
  } else if (active) {
    note(item, 0, active, false);
  } else if (is_named) {
    clinux_item_ask(item);
  }
}

// MARK: The user's session

static int on_session(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  drop_slot(item->bus, &item->call);
  clinux_bus_word word;
  if (is_error(item, reply, &word)) {
    // It has ended, and Display will change.
    if (is_gone(&word))
      note(item, item->last, NULL, true);
    else
      conclude(item, &word);
    return 0;
  }
  int is_active = 0, is_locked = 0;
  property wanted[] = {{"Active", "b", &is_active, NULL, false}, {"LockedHint", "b", &is_locked, NULL, false}};
  if (!read_properties(&item->bus->sd, reply, wanted, 2) || !wanted[0].is_there || !wanted[1].is_there)
    conclude_with(item, CLINUX_BUS_MALFORMED, 0);
  else
    note(item,
         is_locked ? CLINUX_SESSION_LOCKED : is_active ? CLINUX_SESSION_ACTIVE : CLINUX_SESSION_INACTIVE, NULL,
         true);
  return 0;
}

static int on_user(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  if (!has_reply(item, reply)) return 0;
  const char *id = NULL, *path = NULL;
  property display = {"Display", "(so)", &id, &path, false};
  if (!read_properties(&item->bus->sd, reply, &display, 1) || !path)
    conclude_with(item, CLINUX_BUS_MALFORMED, 0);
  else if (strcmp(path, "/") == 0)
    note(item, CLINUX_SESSION_NONE, NULL, true);
  else
    get_all(item, path, LOGIND ".Session", on_session);
  return 0;
}

static void session_changed(item *item, sd_bus_message *signal) {
  bool is_named = false;
  property wanted[] = {{.name = "Display"}, {.name = "Active"}, {.name = "LockedHint"}};
  bool is_read = read_changes(&item->bus->sd, signal, wanted, 3, &is_named);
  if (!is_read || is_named || wanted[0].is_there || wanted[1].is_there || wanted[2].is_there) clinux_item_ask(item);
}

// MARK: Who owns a name

static void become_owner(service *service, const char *unique) {
  snprintf(service->unique, sizeof service->unique, "%s", unique);
}

static int on_owner_changed(sd_bus_message *signal, void *context, sd_bus_error *error) {
  (void)error;
  service *service = context;
  const clinux_sdbus *sd = &service->bus->sd;
  const char *sender = sd->bus_message_get_sender(signal), *name, *old, *unique;
  if (!sender || strcmp(sender, BUS) != 0 || sd->bus_message_read(signal, "sss", &name, &old, &unique) <= 0) return 0;
  become_owner(service, unique);
  if (!*unique) return 0;
  // What the old one has said may be outdated.
  for (item *item = service->bus->items; item; item = item->next)
    if (service_of(item) == service && item->matter != CLINUX_BUS_JOB) clinux_item_ask_anew(item);
  return 0;
}

static int on_owner(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  service *service = context;
  const clinux_sdbus *sd = &service->bus->sd;
  const char *unique;
  if (sd->bus_message_is_method_error(reply, NULL) <= 0 && sd->bus_message_read_basic(reply, 's', &unique) > 0)
    become_owner(service, unique);
  return 0;
}

/// Without this sd-bus ends the connection where the bus refuses.
static int on_tracked(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)reply, (void)context, (void)error;
  return 0;
}

/// The bus handles our requests in order, so the owner is known before the first signal of a match that is made after
/// this.
static void track(service *service) {
  clinux_bus *bus = service->bus;
  if (service->match) return;
  char rule[256];
  snprintf(rule, sizeof rule, "type='signal',interface='" BUS "',member='NameOwnerChanged',sender='" BUS
           "',path='/org/freedesktop/DBus',arg0='%s'", service->name);
  bus->sd.bus_add_match_async(bus->sd_bus, &service->match, rule, on_owner_changed, on_tracked,
                              service);
  send_call(bus, &service->call, BUS, "/org/freedesktop/DBus", BUS, "GetNameOwner",
            (const char *[]){service->name, NULL}, on_owner, service);
}

// MARK: Signals

static void announced(item *item, sd_bus_message *signal, const char *member) {
  const clinux_sdbus *sd = &item->bus->sd;
  int is_coming = 0;
  if (sd->bus_message_read_basic(signal, 'b', &is_coming) <= 0) {
    clinux_bus_word word = {.outcome = CLINUX_BUS_MALFORMED, .descriptor = -1, .member = member};
    clinux_item_tell(item, &word);
    return;
  }
  const char *kind = NULL;
  property type = {"type", "s", &kind, NULL, false};
  // The shutdown counts, not its metadata, which come before the plain signal.
  if (is_coming && strcmp(member, "PrepareForShutdownWithMetadata") == 0)
    if (!read_properties(sd, signal, &type, 1)) kind = NULL;
  note(item, is_coming, kind, false);
}

static int on_signal(sd_bus_message *signal, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  const clinux_sdbus *sd = &item->bus->sd;
  const char *sender = sd->bus_message_get_sender(signal);
  const char *member = sd->bus_message_get_member(signal);
  if (!sender || !member || strcmp(sender, service_of(item)->unique) != 0) return 0;
  switch (item->matter) {
    case CLINUX_BUS_SLEEP:
    case CLINUX_BUS_SHUTDOWN: announced(item, signal, member); break;
    case CLINUX_BUS_UNIT: unit_changed(item, signal); break;
    default:
      if (strcmp(member, "PropertiesChanged") == 0)
        session_changed(item, signal);
      else
        clinux_item_ask(item);
  }
  return 0;
}

static int on_matched(sd_bus_message *reply, void *context, sd_bus_error *error) {
  (void)error;
  item *item = context;
  clinux_bus_word word;
  if (!is_error(item, reply, &word)) return 0;
  word.member = "AddMatch";
  clinux_item_tell(item, &word);
  return 0;
}

/// What signals of the item's service are followed; `detail`: what else they must have, in the bus's own language.
static void match(item *item, int number, const char *interface, const char *member, const char *detail) {
  char rule[1536];
  snprintf(rule, sizeof rule, "type='signal',interface='%s',member='%s',sender='%s'%s", interface, member,
           service_of(item)->name, detail);
  int result = item->bus->sd.bus_add_match_async(item->bus->sd_bus, &item->matches[number], rule, on_signal,
                                                 on_matched, item);
  if (result >= 0) return;
  clinux_bus_word word = {.outcome = CLINUX_BUS_FAILED, .error = -result, .descriptor = -1, .member = member};
  clinux_item_tell(item, &word);
}

void clinux_item_follow(item *item) {
  track(service_of(item));
  static const char manager[] = LOGIND ".Manager", at_manager[] = ",path='" LOGIND_PATH "'";
  switch (item->matter) {
    case CLINUX_BUS_SLEEP: match(item, 0, manager, "PrepareForSleep", at_manager); break;
    case CLINUX_BUS_SHUTDOWN:
      match(item, 0, manager, "PrepareForShutdownWithMetadata", at_manager);
      match(item, 1, manager, "PrepareForShutdown", at_manager);
      break;
    case CLINUX_BUS_UNIT: {
      char detail[1024];
      snprintf(detail, sizeof detail, ",path='%s',arg0='" SYSTEMD ".Unit'", item->argument);
      match(item, 0, PROPERTIES, "PropertiesChanged", detail);
      break;
    }
    case CLINUX_BUS_SESSION:
      match(item, 0, manager, "SessionNew", at_manager);
      match(item, 1, manager, "SessionRemoved", at_manager);
      // Of all users and sessions: signals do not come from "self", and there are few of others.
      match(item, 2, PROPERTIES, "PropertiesChanged", ",arg0='" LOGIND ".User'");
      match(item, 3, PROPERTIES, "PropertiesChanged", ",arg0='" LOGIND ".Session'");
      break;
    default: break;
  }
}

/// Asks the question, or reads what is so now. Something that is asked already is asked again after that.
void clinux_item_ask(item *item) {
  clinux_bus *bus = item->bus;
  if (item->phase == ASKING) {
    item->is_outdated = true;
    return;
  }
  if (bus->state != CONNECTED || atomic_load(&bus->has_ended)) return;
  item->phase = IDLE;
  if (!is_followed(item) && !bus->listener.is_wanted(bus->listener.context, item->number)) return;
  item->phase = ASKING;
  switch (item->matter) {
    case CLINUX_BUS_STOP_TIMEOUT: return get(item, OWN_UNIT, SYSTEMD ".Service", "TimeoutStopUSec", on_number);
    case CLINUX_BUS_JOB: return get(item, OWN_UNIT, SYSTEMD ".Unit", "Job", on_job);
    case CLINUX_BUS_DELAY_MAX: return get(item, LOGIND_PATH, LOGIND ".Manager", "InhibitDelayMaxUSec", on_number);
    case CLINUX_BUS_SLEEP: return get(item, LOGIND_PATH, LOGIND ".Manager", "PreparingForSleep", on_flag);
    case CLINUX_BUS_SHUTDOWN: return get(item, LOGIND_PATH, LOGIND ".Manager", "PreparingForShutdown", on_flag);
    case CLINUX_BUS_UNIT: return read_unit(item);
    case CLINUX_BUS_LOCK:
      item->member = "Inhibit";
      return call(item, LOGIND_PATH, LOGIND ".Manager", "Inhibit",
                  (const char *[]){item->argument, item->program, "Saves its state", "delay", NULL}, on_lock);
    case CLINUX_BUS_SESSION:
      item->member = "Display";
      return get_all(item, OWN_USER, LOGIND ".User", on_user);
  }
}

void clinux_item_ask_anew(item *item) {
  item->delay = item->bus->options.first_delay;
  clinux_item_ask(item);
}
