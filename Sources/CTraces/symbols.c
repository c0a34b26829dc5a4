// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CTraces.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Finds the function at an offset of an ELF file in the table of all symbols, which a stripped file lacks.
static bool find(const uint8_t *file, size_t size, uintptr_t offset, char *name, size_t name_size) {
  const ElfW(Ehdr) *header = (const void *)file;
  if (size < sizeof *header || memcmp(file, ELFMAG, SELFMAG) != 0) return false;
  size_t count = header->e_shnum;
  if (header->e_shoff > size || count > (size - header->e_shoff) / sizeof(ElfW(Shdr))) return false;
  const ElfW(Shdr) *sections = (const void *)(file + header->e_shoff);
  for (size_t i = 0; i < count; i++) {
    const ElfW(Shdr) *table = &sections[i];
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= count) continue;
    const ElfW(Shdr) *names = &sections[table->sh_link];
    if (table->sh_offset > size || table->sh_size > size - table->sh_offset) continue;
    if (names->sh_offset > size || names->sh_size > size - names->sh_offset) continue;
    const ElfW(Sym) *symbols = (const void *)(file + table->sh_offset);
    for (size_t s = 0; s < table->sh_size / sizeof *symbols; s++) {
      const ElfW(Sym) *symbol = &symbols[s];
      if ((symbol->st_info & 0xf) != STT_FUNC || symbol->st_name >= names->sh_size) continue;
      if (offset < symbol->st_value || offset - symbol->st_value >= symbol->st_size) continue;
      const char *found = (const char *)file + names->sh_offset + symbol->st_name;
      size_t length = strnlen(found, names->sh_size - symbol->st_name);
      if (length >= name_size) length = name_size - 1;
      memcpy(name, found, length);
      name[length] = 0;
      return true;
    }
  }
  return false;
}

// In libswiftCore; the result is to be freed.
extern char *swift_demangle(const char *mangled, size_t length, char *output, size_t *size, uint32_t flags)
    __attribute__((weak));

char *ctraces_name(uintptr_t address, const char **object, uintptr_t *offset) {
  Dl_info info;
  struct link_map *map = NULL;
  char name[4096] = "";
  *object = NULL;
  *offset = 0;
  if (!dladdr1((const void *)address, &info, (void **)&map, RTLD_DL_LINKMAP)) return NULL;
  *object = info.dli_fname;
  *offset = address - (map ? map->l_addr : 0);
  int file = open(map && map->l_name[0] ? map->l_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
    size_t length = (size_t)status.st_size;
    const uint8_t *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      find(bytes, length, *offset, name, sizeof name);
      munmap((void *)bytes, length);
    }
  }
  if (file >= 0) close(file);
  if (!name[0]) {
    // A stripped file still has the names that it exports.
    const ElfW(Sym) *symbol = NULL;
    if (dladdr1((const void *)address, &info, (void **)&symbol, RTLD_DL_SYMENT) && info.dli_sname && symbol &&
        address - (uintptr_t)info.dli_saddr < symbol->st_size) {
      strncpy(name, info.dli_sname, sizeof name - 1);
    }
  }
  if (!name[0]) return NULL;
  char *demangled = swift_demangle ? swift_demangle(name, strlen(name), NULL, NULL, 0) : NULL;
  return demangled ? demangled : strdup(name);
}
