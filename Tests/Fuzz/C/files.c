// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[4096];

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status, (void)kind, (void)place;
  return remove(path);
}

static void remove_folder(void) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

const char *fuzz_folder(void) {
  if (!*folder) {
    const char *place = getenv("TMPDIR");
    int length = snprintf(folder, sizeof folder, "%s/fuzz.XXXXXX", place ? place : "/tmp");
    if (length >= (int)sizeof folder || !mkdtemp(folder)) abort();
    atexit(remove_folder);
  }
  return folder;
}

static void put(const char *path, int flags, const uint8_t *bytes, size_t count) {
  int file = open(path, flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || (count && write(file, bytes, count) != (ssize_t)count)) abort();
  close(file);
}

void fuzz_write(const char *path, const uint8_t *bytes, size_t count) { put(path, O_TRUNC, bytes, count); }

void fuzz_append(const char *path, const uint8_t *bytes, size_t count) { put(path, O_APPEND, bytes, count); }

void fuzz_remove(const char *path) { remove(path); }

const char *fuzz_file(const uint8_t *bytes, size_t count) {
  static char path[sizeof folder + 8];
  if (!count) return NULL;
  snprintf(path, sizeof path, "%s/file", fuzz_folder());
  fuzz_write(path, bytes, count);
  return path;
}

int fuzz_memory(const uint8_t *bytes, size_t count, bool is_sealed) {
  int file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || (count && write(file, bytes, count) != (ssize_t)count)) abort();
  if (is_sealed && fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) abort();
  return file;
}

void fuzz_limit_descriptors(unsigned count) {
  struct rlimit limit = {count, count};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) abort();
}
