// SPDX-License-Identifier: Apache-2.0
// Where another thread of this process waits: its stack, from the kernel's word on it and the call frame information of
// the code, without a signal, which would interrupt what it waits in.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The addresses of the functions in which a thread waits, the innermost first: the count, 0 where the thread runs, has
/// ended, or can't be read, or -1 for the calling thread. `memory` is a descriptor of /proc/self/mem.
int ctraces_stack(pid_t thread, int memory, uintptr_t *addresses, int most);

/// The same from a program counter and a stack pointer on, which may be any.
int ctraces_walk(int memory, uintptr_t pc, uintptr_t sp, uintptr_t *addresses, int most);

/// The name of the function of an address, as in Swift's sources, to be freed; as the linker knows it, where it is not
/// Swift's; NULL where it is not known. `object` receives the path of its program or library, `offset` the place in that.
char *ctraces_name(uintptr_t address, const char **object, uintptr_t *offset);
