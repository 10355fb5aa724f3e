/* SPDX-License-Identifier: MIT */
/*
 * The stack is deepest where the longest way through the calls ends. Calls through pointers are the ends of these ways
 * as the objects show them: they stand in functions of their own (runtime/indirect.h), which call what has had its
 * address taken. No function calls itself, so each of those is on the stack at most once: a way from the first function
 * to an indirect call, such ways from functions whose addresses are taken, each once, and at the end a whole way, of
 * one of these or of a function in the tables of the unit. The sum is an upper bound, which is rarely reached.
 */
#include "link/stack_need.h"

#include <stddef.h>
#include <string.h>

#include "link/elf_file.h"
#include "rnncc.h"
#include "support/diagnostics.h"
#include "support/numbers.h"

enum { NO_WAY = -1 };

/* Of a function: bytes of the stack from its caller on. */
typedef struct Ways {
  int64_t whole;       /* where nothing more of the module is called */
  int64_t to_indirect; /* in an indirect call; NO_WAY: it makes none */
  int64_t library;     /* the most that functions of libc take, at the end of any way */
  bool is_known, is_open;
} Ways;

typedef struct Search {
  const CallGraph *graph;
  Ways *ways;       /* [n_functions] */
  bool is_circular; /* a function may call itself */
} Search;

static const char indirect[] = "indirect_";
static bool is_indirect(const Function *f) { return !strncmp(f->name, indirect, strlen(indirect)); }

/* The graph is some ten calls deep. */
static const Ways *ways_of(Search *s, const Function *f) {
  Ways *ways = &s->ways[f - s->graph->functions];
  if (ways->is_known) return ways;
  if (ways->is_open) s->is_circular = true;
  if (ways->is_open) return ways;
  ways->is_open = true;
  int64_t deepest = 0, to_indirect = is_indirect(f) ? 0 : NO_WAY;
  ways->library = f->library;
  for (int i = 0; i < f->n_callees; i++) {
    const Ways *callee = ways_of(s, f->callees[i]);
    deepest = max_int(deepest, callee->whole);
    to_indirect = max_int(to_indirect, callee->to_indirect);
    ways->library = max_int(ways->library, callee->library);
  }
  ways->whole = f->frame + deepest;
  ways->to_indirect = to_indirect == NO_WAY ? NO_WAY : f->frame + to_indirect;
  ways->is_known = true;
  return ways;
}

/* ---- a thread's first function ---- */

static bool is_one_of(const Function *f, const char *const *names) {
  for (; *names; names++)
    if (!strcmp(f->name, *names)) return true;
  return false;
}

/* The first on a stack of the module's own. */
static bool is_at_bottom(const Function *f) {
  static const char *const names[] = {"worker_main", "fiber_first", NULL};
  return is_one_of(f, names);
}

/* The same, or on a thread of a host's. */
static bool is_of_workers(const Function *f) {
  static const char *const names[] = {"call_on_host_thread", NULL};
  return is_at_bottom(f) || is_one_of(f, names);
}

/* What any indirect call may lead to: `between`, then `last`. */
typedef struct Indirect {
  int64_t between, last, library;
} Indirect;

static void may_end(Indirect *it, const Ways *ways) {
  it->last = max_int(it->last, ways->whole);
  it->library = max_int(it->library, ways->library);
}

static bool is_of(const Function *f, int object) { return f->object == object; }

/* With the runtime, the last object, for the unit and its derivation. */
static Indirect indirect_of(Search *s, const StackUnit *units, int unit, int runtime) {
  Indirect it = {0};
  for (int i = 0; i < s->graph->n_functions; i++) {
    const Function *f = &s->graph->functions[i];
    const Ways *ways = ways_of(s, f);
    bool is_taken = is_of(f, runtime) && f->is_taken && !is_at_bottom(f);
    if (is_taken && ways->to_indirect != NO_WAY) it.between += ways->to_indirect;
    if (is_taken || (f->is_listed && (is_of(f, unit) || is_of(f, units[unit].derivation)))) may_end(&it, ways);
  }
  return it;
}

/* Room below the stack pointer that a function which calls none uses (System V's AMD64 ABI, 3.2.2). */
enum { RED_ZONE = 128 };

static int64_t need_of(Search *s, const Indirect *after, bool is_first(const Function *f), int runtime) {
  int64_t most = 0;
  for (int i = 0; i < s->graph->n_functions; i++) {
    const Function *f = &s->graph->functions[i];
    if (!is_of(f, runtime) || !is_first(f)) continue;
    const Ways *ways = ways_of(s, f);
    int64_t need = ways->whole + ways->library;
    if (ways->to_indirect != NO_WAY)
      need = max_int(need, ways->to_indirect + after->between + after->last + after->library);
    most = max_int(most, need + RED_ZONE);
  }
  return most;
}

static bool is_run(const Function *f) {
  static const char *const names[] = {"context_run", "training_backward", "training_backward_from", "training_step",
                                      NULL};
  return is_one_of(f, names);
}

/* Of the interface's tables, or seen from outside. */
static bool is_in_interface(const Function *f) { return f->is_listed || f->is_global; }

/* ---- into the object ---- */

enum { N_NEEDS = 3 };
_Static_assert(offsetof(rnncc_info, run_stack_bytes) + N_NEEDS * sizeof(size_t) == sizeof(rnncc_info) &&
                   offsetof(rnncc_info, worker_stack_bytes) + sizeof(size_t) == sizeof(rnncc_info),
               "the needs end rnncc_info, whose size its first field has: so they are found in any target's form");

/* Where a symbol's bytes are in the file; 0: it has none. */
static uint64_t place_of(const Elf *elf, const char *name) {
  uint64_t table = elf_section_of_kind(elf, SHT_SYMTAB), at = ELF_FIELD(elf, table, Shdr, sh_offset);
  uint64_t names = ELF_FIELD(elf, elf_section(elf, ELF_FIELD(elf, table, Shdr, sh_link)), Shdr, sh_offset);
  for (uint64_t end = at + ELF_FIELD(elf, table, Shdr, sh_size); at < end; at += ELF_STRUCT_BYTES(elf, Sym)) {
    if (strcmp(elf_text(elf, names + ELF_FIELD(elf, at, Sym, st_name)), name) != 0) continue;
    uint64_t section = elf_section(elf, ELF_FIELD(elf, at, Sym, st_shndx));
    return ELF_FIELD(elf, section, Shdr, sh_offset) + ELF_FIELD(elf, at, Sym, st_value);
  }
  return 0;
}

static void write_needs(const StackUnit *unit, const int64_t *needs) {
  Elf elf = elf_open(unit->object.path);
  size_t width = elf.wide ? 8 : 4;
  uint64_t info = place_of(&elf, unit->module), end = info + elf_number(&elf, info, sizeof(uint32_t));
  if (!elf.bytes) fatal_at(LOCATION_FILE(unit->object.path), EXIT_ENVIRONMENT, "cannot be read again");
  elf_close(&elf);
  if (!info)
    fatal_at(LOCATION_FILE(unit->object.path), EXIT_ENVIRONMENT, "expected the symbol %s in what clang wrote",
             unit->module);
  uint8_t bytes[N_NEEDS * 8];
  for (size_t i = 0; i < N_NEEDS * width; i++)
    bytes[i] = (uint8_t)((uint64_t)needs[i / width] >> 8 * (i % width)); /* little-endian, as all targets are */
  elf_write(unit->object.path, end - N_NEEDS * width, bytes, N_NEEDS * width);
}

void write_stack_needs(Arena *arena, const StackUnit *units, int count, const char *runtime) {
  CompiledObject *objects = ARENA_ARRAY(arena, CompiledObject, count + 1);
  for (int i = 0; i < count; i++) objects[i] = units[i].object;
  enum { RUNTIME_PUSHES = 6 }; /* functions of twelve arguments, or messages of as many */
  objects[count] = (CompiledObject){.path = runtime, .pushed_arguments = RUNTIME_PUSHES};
  CallGraph graph;
  if (!call_graph_read(&graph, arena, objects, count + 1)) return;
  Search search = {.graph = &graph, .ways = ARENA_ARRAY(arena, Ways, graph.n_functions)};
  for (int i = 0; i < count; i++) {
    Indirect after = indirect_of(&search, units, i, count);
    int64_t needs[N_NEEDS] = {need_of(&search, &after, is_run, count), need_of(&search, &after, is_in_interface, count),
                              need_of(&search, &after, is_of_workers, count)};
    if (!search.is_circular) write_needs(&units[i], needs);
  }
}
