// SPDX-License-Identifier: Apache-2.0
// Finds where another thread of this process waits: its stack, from /proc and from the call frame information of the
// code. No signal is used, which would interrupt the system call that the thread waits in.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {  // for Swift that is built with interoperability with C++
#endif

/// Stores the addresses of the functions in which a thread waits, the innermost first. Returns their number; 0 if the
/// thread runs, has ended, or can't be read; -1 for the calling thread. `memory` is a descriptor of /proc/self/mem.
int ctraces_stack(pid_t thread, int memory, uintptr_t *addresses, int most);

/// The same from a program counter and a stack pointer, which may have any values.
int ctraces_walk(int memory, uintptr_t pc, uintptr_t sp, uintptr_t *addresses, int most);

/// Returns the name of the function at an address, to be freed: as in Swift's sources, or the linker's for other code;
/// NULL if it is unknown. `object` receives the path of its program or library, `offset` the place in that.
char *ctraces_name(uintptr_t address, const char **object, uintptr_t *offset);

#ifdef __cplusplus
}
#endif
