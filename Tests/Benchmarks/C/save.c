// SPDX-License-Identifier: Apache-2.0
// The calls that a durable save needs, in C: DIRECTORY BYTES COUNT. Says the time of each save, in nanoseconds.
#define _GNU_SOURCE
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void check(int failed, const char *what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

static void save(const char *path, int directory, const char *bytes, size_t size, int slot) {
  struct stat status;
  char temporary[64], name[16];
  snprintf(temporary, sizeof temporary, ".state.%016llx.new", (unsigned long long)bench_now());
  snprintf(name, sizeof name, "state.%d", slot);
  check(fstatat(AT_FDCWD, path, &status, 0) < 0, "directory");
  check(fstatat(directory, "state.lock", &status, AT_SYMLINK_NOFOLLOW) < 0, "lock");
  int file = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  check(file < 0 || fstat(file, &status) < 0, "open");
  check(write(file, bytes, size) != (ssize_t)size, "write");
  check(fsync(file) < 0, "fsync");
  close(file);
  check(renameat(directory, temporary, directory, name) < 0, "rename");
  check(fsync(directory) < 0, "fsync of the directory");
}

int main(int count, char **arguments) {
  if (count < 4) return 64;
  const char *path = arguments[1];
  size_t size = strtoul(arguments[2], NULL, 10);
  int repetitions = atoi(arguments[3]);
  char *bytes = malloc(size);
  for (size_t index = 0; index < size; index++) bytes[index] = (char)index;
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(directory < 0, path);
  int lock = openat(directory, "state.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  check(lock < 0, "lock");
  for (int repetition = 0; repetition <= repetitions; repetition++) {
    uint64_t began = bench_now();
    save(path, directory, bytes, size, repetition % 2);
    if (repetition > 0) dprintf(BENCH_CHANNEL, "time %llu\n", (unsigned long long)(bench_now() - began));
  }
}
