// SPDX-License-Identifier: Apache-2.0
// What the targets need of C: files to read, and a bus that says whatever an input says.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Files.

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

// The bus. It has sd-bus's functions, which `clinux_sdbus_load` finds in this program.

/// All that the bus does from here on is taken from these bytes, which must stay; at their end it does nothing.
void fuzz_bus_begin(const uint8_t *_Nullable bytes, size_t count);
/// The next byte; 0 at the end.
uint8_t fuzz_bus_byte(void);
bool fuzz_bus_has_ended(void);
/// The bus's time in µs, which goes on only here.
void fuzz_bus_wait(uint64_t time);
uint64_t fuzz_bus_time(void);
/// How many buses, slots and messages there are.
int fuzz_bus_objects(void);
