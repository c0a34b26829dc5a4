// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CTraces.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The numbers of DWARF for the registers that matter (psABI of x86-64; AAPCS64).
#if defined(__x86_64__)
enum { FP = 6, SP = 7, RA = 16 };
#elif defined(__aarch64__)
enum { FP = 29, SP = 31, RA = 30 };
#endif

// In libgcc_s, which every Swift program has.
struct bases {
  void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(const void *pc, struct bases *bases);

// The known registers of a frame; 0 is unknown.
typedef struct {
  uintptr_t pc, sp, fp;
} frame;

// A row of the table: the CFA is a register plus an offset; FP and RA are saved at offsets from it, or not saved.
typedef struct {
  unsigned cfa_register;
  long cfa_offset, fp_offset, ra_offset;
  bool is_cfa_known, is_fp_saved, is_ra_saved;
} rules;

typedef struct {
  const uint8_t *at, *end;
} reader;

static uint64_t number(reader *r, size_t size) {
  uint64_t value = 0;
  if ((size_t)(r->end - r->at) < size) return r->at = r->end, 0;
  memcpy(&value, r->at, size);
  r->at += size;
  return value;
}

static uint64_t uleb(reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; r->at < r->end; shift += 7) {
    uint8_t byte = *r->at++;
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) break;
  }
  return value;
}

static int64_t sleb(reader *r) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte = 0;
  while (r->at < r->end) {
    byte = *r->at++;
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    shift += 7;
    if (!(byte & 0x80)) break;
  }
  if (shift < 64 && byte & 0x40) value |= -(1ULL << shift);
  return (int64_t)value;
}

static void skip(reader *r, uint64_t size) {
  r->at = size < (size_t)(r->end - r->at) ? r->at + size : r->end;
}

static size_t encoded_size(uint8_t encoding) {
  switch (encoding & 0x0f) {
    case 0x02: case 0x0a: return 2;
    case 0x03: case 0x0b: return 4;
    default: return 8;
  }
}

typedef struct {
  uint64_t code_align;
  int64_t data_align;
  uint8_t encoding;
  bool has_augmentation;
  reader program;
} cie;

// Entries of .eh_frame begin with their length, and the distance to their CIE, 0 in a CIE itself.
static bool entry(const uint8_t *at, reader *body, const uint8_t **cie_at) {
  uint32_t length, distance;
  memcpy(&length, at, 4);
  if (length == 0 || length >= 0xfffffff0) return false;
  memcpy(&distance, at + 4, 4);
  *body = (reader){at + 8, at + 4 + length};
  *cie_at = at + 4 - distance;
  return true;
}

static bool read_cie(const uint8_t *at, cie *cie) {
  reader r;
  const uint8_t *unused;
  if (!entry(at, &r, &unused)) return false;
  uint8_t version = (uint8_t)number(&r, 1);
  const char *augmentation = (const char *)r.at;
  while (r.at < r.end && *r.at++) {}
  cie->code_align = uleb(&r);
  cie->data_align = sleb(&r);
  uint64_t ra = version == 1 ? number(&r, 1) : uleb(&r);
  cie->encoding = 0;
  cie->has_augmentation = augmentation[0] == 'z';
  if (ra != RA || (augmentation[0] && !cie->has_augmentation)) return false;
  if (cie->has_augmentation) {
    uint64_t size = uleb(&r);
    if (size > (size_t)(r.end - r.at)) return false;
    reader a = {r.at, r.at + size};
    r.at += size;
    for (const char *c = augmentation + 1; *c; c++) {
      switch (*c) {
        case 'R': cie->encoding = (uint8_t)number(&a, 1); break;
        case 'L': number(&a, 1); break;
        case 'P': number(&a, encoded_size((uint8_t)number(&a, 1))); break;
        case 'S': return false;  // a signal's frame
        default: break;
      }
    }
  }
  cie->program = r;
  return true;
}

// Runs a program of call frame instructions up to `offset` in the function. False at an unsupported instruction.
static bool run(reader r, const cie *cie, uint64_t offset, rules *row, const rules *initial) {
  rules stack[8];
  int depth = 0;
  uint64_t location = 0;
  while (r.at < r.end) {
    uint8_t op = (uint8_t)number(&r, 1);
    uint64_t reg = op & 0x3f, advance = 0;
    int64_t value = 0;
    bool sets = false, saved = true;
    switch (op & 0xc0) {
      case 0x40: advance = reg; op = 0; break;
      case 0x80: value = (int64_t)uleb(&r) * cie->data_align; sets = true; op = 0; break;
      case 0xc0: sets = true; saved = false; op = 0x06; break;  // restore
      default: reg = 0;
    }
    switch (op) {
      case 0x00: break;
      case 0x02: advance = number(&r, 1); break;
      case 0x03: advance = number(&r, 2); break;
      case 0x04: advance = number(&r, 4); break;
      case 0x05: reg = uleb(&r); value = (int64_t)uleb(&r) * cie->data_align; sets = true; break;
      case 0x11: reg = uleb(&r); value = sleb(&r) * cie->data_align; sets = true; break;
      case 0x06:
        if (!sets) reg = uleb(&r), sets = true, saved = false;
        if (reg == FP) row->is_fp_saved = initial->is_fp_saved, row->fp_offset = initial->fp_offset;
        if (reg == RA) row->is_ra_saved = initial->is_ra_saved, row->ra_offset = initial->ra_offset;
        sets = false;
        break;
      case 0x07: case 0x08: reg = uleb(&r); sets = true; saved = false; break;  // undefined, the same value
      case 0x09: uleb(&r); uleb(&r); break;
      case 0x0a: if (depth == 8) return false; stack[depth++] = *row; break;
      case 0x0b: if (depth == 0) return false; *row = stack[--depth]; break;
      case 0x0c: case 0x12:
        row->cfa_register = (unsigned)uleb(&r);
        row->cfa_offset = op == 0x0c ? (long)uleb(&r) : (long)(sleb(&r) * cie->data_align);
        row->is_cfa_known = true;
        break;
      case 0x0d: row->cfa_register = (unsigned)uleb(&r); break;
      case 0x0e: row->cfa_offset = (long)uleb(&r); break;
      case 0x13: row->cfa_offset = (long)(sleb(&r) * cie->data_align); break;
      case 0x0f: row->is_cfa_known = false; skip(&r, uleb(&r)); break;  // an expression
      case 0x10: case 0x16:
        reg = uleb(&r);
        skip(&r, uleb(&r));
        if (reg == FP || reg == RA) return false;
        break;
      case 0x2d: break;  // the signature of return addresses, whose bits are cut off
      case 0x2e: uleb(&r); break;
      default: return false;
    }
    if (sets && reg == FP) row->is_fp_saved = saved, row->fp_offset = (long)value;
    if (sets && reg == RA) row->is_ra_saved = saved, row->ra_offset = (long)value;
    location += advance * cie->code_align;
    if (advance && location > offset) {
      // The row before this advance counts.
      return true;
    }
  }
  return true;
}

static bool word(int memory, uintptr_t address, uintptr_t *value) {
  return address % sizeof *value == 0 && pread(memory, value, sizeof *value, (off_t)address) == sizeof *value;
}

// Whether the instruction before a return address is a direct call of a function.
static bool calls(int memory, uintptr_t return_address, uintptr_t function) {
#if defined(__x86_64__)
  uint8_t code[5];
  if (pread(memory, code, 5, (off_t)return_address - 5) != 5 || code[0] != 0xe8) return false;
  int32_t distance;
  memcpy(&distance, code + 1, 4);
  return return_address + (intptr_t)distance == function;
#else
  uint32_t code;
  if (pread(memory, &code, 4, (off_t)return_address - 4) != 4 || code >> 26 != 0x25) return false;
  return return_address - 4 + (intptr_t)((int32_t)(code << 6) >> 4) == function;
#endif
}

// Finds the frame pointer where it is not known, for a function that has one: its frame is the first on the stack whose
// return address follows a call of the function.
static uintptr_t find_fp(int memory, uintptr_t sp, uintptr_t function) {
  uintptr_t stack[512];
  ssize_t size = pread(memory, stack, sizeof stack, (off_t)sp);
  for (ssize_t i = 1; i < size / (ssize_t)sizeof *stack; i++) {
    if (calls(memory, stack[i], function)) return sp + (uintptr_t)(i - 1) * sizeof *stack;
  }
  return 0;
}

// Goes from a frame to its caller's. False at the end, or where the caller is not known.
static bool step(int memory, frame *f, bool is_first) {
  struct bases bases = {0};
  const uint8_t *fde = _Unwind_Find_FDE((const void *)(f->pc - !is_first), &bases);
  if (!fde) return false;
  uintptr_t function = (uintptr_t)bases.function;
  reader body;
  const uint8_t *cie_at;
  cie cie;
  if (!entry(fde, &body, &cie_at) || !read_cie(cie_at, &cie)) return false;
  size_t size = encoded_size(cie.encoding);
  number(&body, size);
  number(&body, size);
  if (cie.has_augmentation) skip(&body, uleb(&body));
  rules initial = {0}, row;
  if (!run(cie.program, &cie, UINT64_MAX, &initial, &initial)) return false;
  row = initial;
  if (!run(body, &cie, f->pc - !is_first - function, &row, &initial) || !row.is_cfa_known) return false;
  uintptr_t base = row.cfa_register == SP ? f->sp : row.cfa_register == FP ? f->fp : 0;
  if (row.cfa_register == FP && !base) base = find_fp(memory, f->sp, function);
  if (!base) return false;
  uintptr_t cfa = base + (uintptr_t)row.cfa_offset;
  // The stack grows down: a caller's frame is above.
  if (cfa <= f->sp || cfa - f->sp > 1 << 24 || !row.is_ra_saved) return false;
  frame caller = {.sp = cfa, .fp = f->fp};
  if (!word(memory, cfa + (uintptr_t)row.ra_offset, &caller.pc)) return false;
  if (row.is_fp_saved && !word(memory, cfa + (uintptr_t)row.fp_offset, &caller.fp)) return false;
#if defined(__aarch64__)
  caller.pc &= (1ULL << 48) - 1;  // without the signature
#endif
  *f = caller;
  return caller.pc != 0;
}

int ctraces_walk(int memory, uintptr_t pc, uintptr_t sp, uintptr_t *addresses, int most) {
  frame f = {.pc = pc, .sp = sp};
  int count = 0;
  while (count < most) {
    // A return address follows the call, which may be a function's last instruction.
    addresses[count] = f.pc - (count > 0);
    count++;
    if (!step(memory, &f, count == 1)) break;
  }
  return count;
}

// Reads the kernel's line about a thread. It ends with the stack pointer and the program counter, unless it runs.
static bool look(pid_t thread, char *text, size_t size, unsigned long *pc, unsigned long *sp) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, size - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = 0;
  char *last = strrchr(text, ' '), *before = last;
  while (before > text && before[-1] != ' ') before--;
  return last && before < last && sscanf(before, "%lx %lx", sp, pc) == 2;
}

int ctraces_stack(pid_t thread, int memory, uintptr_t *addresses, int most) {
  if (thread == syscall(SYS_gettid)) return -1;
  for (int tries = 0; tries < 3; tries++) {
    char before[256] = "", after[256] = "";
    unsigned long pc, sp;
    if (!look(thread, before, sizeof before, &pc, &sp)) return 0;
    int count = ctraces_walk(memory, pc, sp, addresses, most);
    // Only if the thread has waited in the same place all the while.
    if (look(thread, after, sizeof after, &pc, &sp) && strcmp(before, after) == 0) return count;
  }
  return 0;
}
