/* SPDX-License-Identifier: MIT */
/*
 * clang's predefined macros say what a triple means. The kernels are plain C over vectors of four floats, which clang
 * keeps in vector registers if the architecture's base has them, and else in scalar ones.
 */
#include "machine/portable_target.h"

#include <ctype.h>
#include <string.h>

#include "support/clang_program.h"
#include "support/text.h"

bool is_linux_triple(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-");
  return islower((unsigned char)*name) && !name[length] && strstr(name, "-linux");
}

/* ---- what clang says ---- */

static bool defines(const char *macros, const char *line) { return strstr(macros, line); }

/* Registers for vectors of four floats. Where there are none, 32 scalars hold eight. */
enum { SCALAR = 8 };
static const struct {
  const char *macro;
  int count;
} registers[] = {
    {"#define __aarch64__ ", 32},    {"#define __VSX__ ", 32},    {"#define __ALTIVEC__ ", 32},
    {"#define __loongarch_sx ", 32}, {"#define __mips_msa ", 32}, {"#define __ARM_NEON ", 16},
    {"#define __x86_64__ ", 16},
};

static int registers_of(const char *macros) {
  for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
    if (defines(macros, registers[i].macro)) return registers[i].count;
  return SCALAR;
}

/* ---- the target ---- */

/* Of the x87's floats some bits depend on which of them are in registers. */
static const char *const no_options[] = {NULL}, *const with_sse2[] = {"-msse2", "-mfpmath=sse", NULL};

/* Plain C, too, in scalars; what else is typical of its machines is taken to be so of others. */
static const char small_machine[] = "riscv64-linux-gnu";

static const char *lacking(const char *macros) {
  if (!macros || !defines(macros, "#define __linux__ "))
    return "a name that `rnncc targets` lists, or a triple of Linux that clang knows, such as powerpc64le-linux-gnu";
  if (!defines(macros, "#define __BYTE_ORDER__ __ORDER_LITTLE_ENDIAN__"))
    return "a triple whose numbers are little-endian, as those of weights are";
  if (!defines(macros, "#define __GCC_HAVE_SYNC_COMPARE_AND_SWAP_8 "))
    return "a triple with atomic operations of 8 bytes, which the threads of modules need";
  return NULL;
}

const Target *portable_target(Arena *arena, const char *triple, const char **expected) {
  const char *macros = clang_macros(arena, triple);
  if ((*expected = lacking(macros))) return NULL;
  bool x87 = defines(macros, "#define __i386__ ");
  int count = registers_of(macros);
  bool vectors = x87 || count > SCALAR;
  Target *target = ARENA_NEW(arena, Target);
  *target = *target_find(small_machine);
  target->name = target->base = target->with_glibc = target->triple = triple;
  target->clang_args = x87 ? with_sse2 : no_options;
  target->vector_registers = count;
  if (vectors) target->fma_per_cycle = 1;
  return target;
}
