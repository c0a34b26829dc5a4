// SPDX-License-Identifier: Apache-2.0
// What the targets need of C: files to read.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A folder of this process's own below $TMPDIR, removed when it ends.
const char *_Nonnull fuzz_folder(void);
void fuzz_write(const char *_Nonnull path, const uint8_t *_Nullable bytes, size_t count);
void fuzz_append(const char *_Nonnull path, const uint8_t *_Nullable bytes, size_t count);
void fuzz_remove(const char *_Nonnull path);
/// A file with these bytes, the same path each time; NULL when there are none.
const char *_Nullable fuzz_file(const uint8_t *_Nullable bytes, size_t count);
/// A file of memory, which may be sealed.
int fuzz_memory(const uint8_t *_Nullable bytes, size_t count, bool is_sealed);

void fuzz_limit_descriptors(unsigned count);
