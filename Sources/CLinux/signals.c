// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <stdatomic.h>
#include <sys/signalfd.h>

// One slot per signal. The handler may run on any thread, on several at once, between any two instructions. It uses
// only these lock-free atomics, `found`, getpid(2), sigaction(2), raise(3) and, to wake the listening thread, send(2).
typedef struct {
  _Atomic uintptr_t waker;    // a clinux_waker; 0 = not claimed, GIVEN_UP = no longer, but not free for others yet
  _Atomic uint32_t count;     // deliveries not yet taken
  _Atomic uint64_t sender;    // of the last delivery, see pack_sender
  _Atomic bool from_kernel;   // one of them was the kernel's own
  _Atomic uint64_t sequence;  // of the last delivery
  _Atomic int inside;         // handlers that may still use the waker
  struct sigaction found;     // the disposition to put back; written while claimed
} slot;

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "the signal handler needs lock-free atomics");

#define GIVEN_UP ((uintptr_t)1)

static slot slots[NSIG];
static _Atomic uint64_t last_sequence;
static _Atomic int inside;  // handlers that have begun to record, of all signals
static _Atomic pid_t owner;

// A sender in one integer, so that its parts stay together: in the three highest bits the origin, in the next 29 the
// pid, of which a real one has 23 (the kernel's PID_MAX_LIMIT is 2^22), in the last 32 the uid.
static inline uint64_t pack_sender(clinux_sender_origin origin, pid_t pid, uid_t uid) {
  return (uint64_t)origin << 61 | (uint64_t)((uint32_t)pid & 0x1fffffff) << 32 | (uint32_t)uid;
}

// The codes that the kernel guarantees, by sigaction(2) and rt_sigqueueinfo(2): kill(2) and tgkill(2) name their
// caller, and codes above zero are the kernel's own, since it refuses them and SI_TKILL from any other process. All
// others, SI_TIMER among them, are claims of the sender.
static inline uint64_t sender_of(int code, pid_t pid, uid_t uid) {
  if (code == SI_USER || code == SI_TKILL) {
    // A sender from outside of our pid namespace has the number 0 here, which is not the kernel's doing.
    return pack_sender(CLINUX_SENDER_PROCESS, pid == 0 ? -1 : pid, uid);
  }
  if (code > 0) return pack_sender(CLINUX_SENDER_KERNEL, 0, 0);
  // These have a timer and a count, or a band and a descriptor, where others have pid and uid.
  if (code == SI_TIMER || code == SI_SIGIO) return pack_sender(CLINUX_SENDER_UNNAMED, 0, 0);
  bool is_possible = pid > 0 && pid <= 1 << 22;
  return pack_sender(CLINUX_SENDER_CLAIMED, is_possible ? pid : 0, uid);
}

// Counts deliveries of one sender.
static inline void record(slot *s, uint64_t sender, uint32_t count) {
  uint64_t mine = atomic_fetch_add(&last_sequence, 1) + 1;
  uint64_t seen = atomic_load(&s->sequence);
  while (seen < mine && !atomic_compare_exchange_weak(&s->sequence, &seen, mine)) {}
  atomic_store(&s->sender, sender);
  if (sender >> 61 == CLINUX_SENDER_KERNEL) atomic_store(&s->from_kernel, true);
  atomic_fetch_add(&s->count, count);
}

// Records, and wakes the listening thread. Records only for the waker `only`; for any if that is 0.
static void receive(slot *s, uintptr_t only, uint64_t sender, uint32_t count) {
  atomic_fetch_add(&inside, 1);
  atomic_fetch_add(&s->inside, 1);
  uintptr_t waker = atomic_load(&s->waker);
  // A signal that arrives as the claim is given up is recorded, too: it is taken after that.
  if (only == 0 || only == waker) record(s, sender, count);
  // Before the wake-up, so that the thread that it wakes need not wait for this.
  atomic_fetch_sub(&inside, 1);
  if (waker > GIVEN_UP) clinux_waker_wake((clinux_waker *)waker);
  atomic_fetch_sub(&s->inside, 1);
}

static void handle(int signo, siginfo_t *info, void *context) {
  (void)context;
  int saved = errno;
  slot *s = &slots[signo];
  // Before any read of what `clinux_signal_unlisten` changes: that function waits for this count.
  atomic_fetch_add(&s->inside, 1);
  struct sigaction current = {0};
  bool is_installed = sigaction(signo, NULL, &current) == 0 && current.sa_sigaction == handle;
  if (getpid() != atomic_load(&owner) || atomic_load(&s->waker) == 0) {
    // In a child forked without exec the record would be a copy, and the descriptor the parent's. Or no thread listens
    // any more, and other code has put this handler back, such as a system(3) that began before the end. The signal gets
    // the disposition found; it is blocked until this handler returns. A handler that called this one has had its turn.
    if (is_installed) {
      sigaction(signo, &s->found, NULL);
      raise(signo);
    }
  } else if (is_installed && (current.sa_flags & SA_SIGINFO)) {
    receive(s, 0, sender_of(info->si_code, info->si_pid, info->si_uid), 1);
  } else {
    // Called by the handler that has replaced it, or put back by signal(2): there is no second argument.
    receive(s, 0, pack_sender(CLINUX_SENDER_PASSED_ON, 0, 0), 1);
  }
  atomic_fetch_sub(&s->inside, 1);
  errno = saved;
}

static int install(int signo) {
  struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  sigfillset(&ours.sa_mask);
  return sigaction(signo, &ours, NULL) == 0 ? 0 : errno;
}

void clinux_signal_arrived(int signo, clinux_waker *waker, uint32_t count) {
  receive(&slots[signo], (uintptr_t)waker, pack_sender(CLINUX_SENDER_DISPATCH, 0, 0), count);
}

int clinux_signal_descriptor(int fd, uint64_t signals) {
  sigset_t mask;
  sigemptyset(&mask);
  for (int i = 0; i < 64; i++) {
    if (signals >> i & 1) sigaddset(&mask, i + 1);
  }
  return signalfd(fd, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
}

bool clinux_close_signal_descriptor(int fd) {
  sigset_t none;
  sigemptyset(&none);
  // signalfd(2) refuses every other kind of file.
  return fd >= 0 && signalfd(fd, &none, SFD_NONBLOCK | SFD_CLOEXEC) == fd && close(fd) == 0;
}

void clinux_signal_drain(int fd) {
  struct signalfd_siginfo infos[8];
  ssize_t size;
  do {
    size = read(fd, infos, sizeof infos);
    for (ssize_t i = 0; i < size / (ssize_t)sizeof *infos; i++) {
      // The number may be that of another file by now.
      if (infos[i].ssi_signo >= NSIG) return;
      record(&slots[infos[i].ssi_signo],
             sender_of(infos[i].ssi_code, (pid_t)infos[i].ssi_pid, infos[i].ssi_uid), 1);
    }
  } while (size == sizeof infos);
}

// Empty, and not SIG_IGN, which children would keep through exec(3).
static void nothing(int signo) { (void)signo; }

static _Atomic int ignoring_pipes;

static void handle_pipes(void) {
  struct sigaction found, ours = {.sa_handler = nothing, .sa_flags = SA_RESTART | SA_ONSTACK};
  if (sigaction(SIGPIPE, NULL, &found) == 0 && found.sa_handler == SIG_DFL) sigaction(SIGPIPE, &ours, NULL);
}

void clinux_ignore_broken_pipes(void) {
  atomic_fetch_add(&ignoring_pipes, 1);
  handle_pipes();
}

void clinux_heed_broken_pipes(void) {
  struct sigaction found;
  if (atomic_fetch_sub(&ignoring_pipes, 1) > 1) return;
  if (sigaction(SIGPIPE, NULL, &found) == 0 && found.sa_handler == nothing) signal(SIGPIPE, SIG_DFL);
  // Another subject that began meanwhile has found this handler, and set none.
  if (atomic_load(&ignoring_pipes) > 0) handle_pipes();
}

uint64_t clinux_signal_count(void) {
  // Bounded: a handler's thread may have lost its processor, and a storm may never end.
  for (int i = 0; i < 100 && atomic_load(&inside) != 0; i++) sched_yield();
  return atomic_load(&last_sequence);
}

uintptr_t clinux_own_handler(void) { return (uintptr_t)handle; }

uintptr_t clinux_signal_handler(int signo) {
  struct sigaction current;
  if (sigaction(signo, NULL, &current) != 0) return 0;
  // Put back by signal(2), it would be called without its arguments.
  if (current.sa_sigaction == handle && !(current.sa_flags & SA_SIGINFO) && slots[signo].waker > GIVEN_UP) install(signo);
  return (uintptr_t)current.sa_sigaction;  // sa_handler is the same field
}

int clinux_signal_listen(int signo, clinux_waker *waker, bool keep_ignored) {
  if (signo <= 0 || signo >= NSIG) return EINVAL;
  slot *s = &slots[signo];
  uintptr_t unclaimed = 0;
  if (!atomic_compare_exchange_strong(&s->waker, &unclaimed, (uintptr_t)waker)) return EBUSY;
  atomic_store(&s->count, 0);
  atomic_store(&s->from_kernel, false);
  pid_t last = atomic_load(&owner);
  if (last != 0 && last != getpid()) {
    // A forked child: the handlers that its parent's other threads were in never end here.
    atomic_store(&inside, 0);
    for (int i = 0; i < NSIG; i++) atomic_store(&slots[i].inside, 0);
  }
  atomic_store(&owner, getpid());

  int error = 0;
  struct sigaction found;
  if (sigaction(signo, NULL, &found) != 0) {
    error = errno;
  } else if (keep_ignored && found.sa_handler == SIG_IGN) {
    error = EALREADY;
  } else {
    // Other code has put ours back after the end of an earlier claim, whose `found` still holds.
    if (found.sa_sigaction != handle) s->found = found;
    error = install(signo);
  }
  if (error) atomic_store(&s->waker, 0);
  return error;
}

// Puts the disposition found back, unless the handler was replaced meanwhile.
static void put_back(int signo) {
  if (clinux_signal_handler(signo) == clinux_own_handler()) sigaction(signo, &slots[signo].found, NULL);
}

void clinux_signal_yield(int signo) {
  struct sigaction *found = &slots[signo].found;
  if (found->sa_handler != SIG_DFL && found->sa_handler != SIG_IGN) put_back(signo);
}

void clinux_signal_unlisten(int signo) {
  slot *s = &slots[signo];
  atomic_store(&s->waker, GIVEN_UP);  // refuses new claims
  put_back(signo);
  // A handler counts itself before it loads the waker. Sleep, not yield: its thread may have a
  // lower real-time priority, and would have no turn while this one yields.
  struct timespec moment = {.tv_nsec = 100000};
  // A child forked meanwhile has only a copy of the count.
  while (atomic_load(&s->inside) != 0 && getpid() == atomic_load(&owner)) nanosleep(&moment, NULL);
}

void clinux_signal_release(int signo) {
  uintptr_t given_up = GIVEN_UP;
  atomic_compare_exchange_strong(&slots[signo].waker, &given_up, 0);
}

bool clinux_signal_take(int signo, clinux_signal_record *record) {
  slot *s = &slots[signo];
  uint32_t count = atomic_exchange(&s->count, 0);
  if (count == 0) return false;
  uint64_t sender = atomic_load(&s->sender);
  // A wrapper that relays the signal of a pressed key must not hide the kernel's.
  if (atomic_exchange(&s->from_kernel, false)) sender = pack_sender(CLINUX_SENDER_KERNEL, 0, 0);
  *record = (clinux_signal_record){
      .count = count,
      .origin = (clinux_sender_origin)(sender >> 61),
      .pid = (int32_t)((uint32_t)(sender >> 32) << 3) >> 3,  // with its sign
      .uid = (uint32_t)sender,
      .sequence = atomic_load(&s->sequence),
  };
  return true;
}
