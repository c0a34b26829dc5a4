// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

// flock(2) locks the open file, and a forked child has the same one: the lock would be held until the child ends too,
// although whoever took it has died. So these files are taken from the child before fork(3) returns there. What is
// started by vfork(2), clone(2) or posix_spawn(3) closes them when it executes something.
typedef struct node {
  int fd;  // -1: the node is free for another
  struct node *next;
} node;

// Held by fork(3) itself too, so that no child gets a file that is not in the list yet.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static node *nodes;  // under `mutex`; never freed, since a child must not

static void before_fork(void) { pthread_mutex_lock(&mutex); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&mutex); }

static void after_fork_in_child(void) {
  // The numbers stay taken: whoever closes them later must not close another file that got one meanwhile.
  int nothing = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (node *each = nodes; each; each = each->next) {
    if (each->fd < 0) continue;
    if (nothing < 0 || dup3(nothing, each->fd, O_CLOEXEC) < 0) close(each->fd);
    each->fd = -1;
  }
  if (nothing >= 0) close(nothing);
  pthread_mutex_unlock(&mutex);
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

// A node that is free, NULL without memory.
static node *free_node(void) {
  for (node *each = nodes; each; each = each->next)
    if (each->fd < 0) return each;
  node *made = malloc(sizeof *made);
  if (made == NULL) return NULL;
  *made = (node){.fd = -1, .next = nodes};
  nodes = made;
  return made;
}

int clinux_open_unshared(int directory, const char *name, int flags, mode_t mode) {
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&mutex);
  node *mine = free_node();
  int fd = mine ? clinux_open_at(directory, name, flags, mode) : -1;
  int error = mine ? errno : ENOMEM;
  if (mine) mine->fd = fd;
  pthread_mutex_unlock(&mutex);
  errno = error;
  return fd;
}

void clinux_close_unshared(int fd) {
  pthread_mutex_lock(&mutex);
  for (node *each = nodes; each; each = each->next)
    if (each->fd == fd) each->fd = -1;
  // In the lock: its number may be another thread's at once.
  close(fd);
  pthread_mutex_unlock(&mutex);
}
