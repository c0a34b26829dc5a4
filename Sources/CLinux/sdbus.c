// SPDX-License-Identifier: Apache-2.0
#include "sdbus.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

const char *clinux_sdbus_load(const char *library, clinux_sdbus *functions) {
  static const struct {
    const char *name;
    size_t offset;
  } wanted[] = {
#define CLINUX_SDBUS_ENTRY(result, name, arguments) {"sd_" #name, offsetof(clinux_sdbus, name)},
      CLINUX_SDBUS(CLINUX_SDBUS_ENTRY)
#undef CLINUX_SDBUS_ENTRY
  };
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char *reason = dlerror();
    return reason ? reason : "dlopen failed";
  }
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *function = dlsym(handle, wanted[i].name);
    if (!function) return wanted[i].name;
    // POSIX: the result of dlsym may be copied into a pointer to a function.
    memcpy((char *)functions + wanted[i].offset, &function, sizeof function);
  }
  return NULL;
}
