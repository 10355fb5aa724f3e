/* SPDX-License-Identifier: MIT */
#include "link/call_graph.h"

#include <string.h>

#include "link/stack_sizes.h"
#include "support/list.h"
#include "support/numbers.h"

/* ---- architectures ---- */

enum { MAX_CALLS = 4 };
typedef struct Machine {
  unsigned machine;
  unsigned calls[MAX_CALLS]; /* relocations of instructions that call, or jump at a function's end; 0 ends them */
  bool pushes;               /* arguments past the registers are pushed: clang does not count them */
} Machine;

static const Machine machines[] = {
    {EM_X86_64, {R_X86_64_PLT32}, true},
    {EM_386, {R_386_PC32, R_386_PLT32}, true},
    {EM_AARCH64, {R_AARCH64_CALL26, R_AARCH64_JUMP26}, false},
    {EM_ARM, {R_ARM_CALL, R_ARM_JUMP24, R_ARM_THM_PC22, R_ARM_THM_JUMP24}, false},
    {EM_RISCV, {R_RISCV_CALL, R_RISCV_CALL_PLT, R_RISCV_JAL}, false},
};

static const Machine *machine_of(const Elf *elf) {
  unsigned machine = (unsigned)ELF_FIELD(elf, 0, Ehdr, e_machine);
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].machine == machine) return &machines[i];
  return NULL;
}

static bool is_call(const Machine *machine, unsigned kind) {
  for (int i = 0; i < MAX_CALLS && machine->calls[i]; i++)
    if (machine->calls[i] == kind) return true;
  return false;
}

/* ---- objects ---- */

typedef struct Other {
  Function *function; /* of another object */
  int64_t library;    /* what a function of libc takes */
} Other;

typedef struct Object {
  Elf elf;
  const Machine *machine;
  uint64_t symbols, names, n_symbols; /* where the table and its strings are in the file */
  int *first;                         /* [sections]: its first function; -1: none */
  Other *others;                      /* [n_symbols] */
  int end;                            /* of its functions in the graph */
} Object;

typedef struct Reader {
  CallGraph *graph;
  int n_objects, capacity;
  Object *objects;
  const CompiledObject *compiled;
} Reader;

static uint64_t symbol_at(const Object *object, uint64_t index) {
  return object->symbols + index * ELF_STRUCT_BYTES(&object->elf, Sym);
}

static const char *symbol_name(const Object *object, uint64_t index) {
  return elf_text(&object->elf, object->names + ELF_FIELD(&object->elf, symbol_at(object, index), Sym, st_name));
}

static bool is_undefined(const Object *object, uint64_t index) {
  return ELF_FIELD(&object->elf, symbol_at(object, index), Sym, st_shndx) == SHN_UNDEF;
}

static uint64_t section_flags(const Elf *elf, uint64_t index) {
  return ELF_FIELD(elf, elf_section(elf, index), Shdr, sh_flags);
}

static bool is_code(const Elf *elf, uint64_t section) {
  return section < elf_section_count(elf) && section_flags(elf, section) & SHF_EXECINSTR;
}

/* Of registers whose size clang does not count: N of them are `addvl sp, sp, #-N` of SVE. */
static int64_t scalable_bytes(const Elf *elf, uint64_t at, uint64_t bytes, int64_t vector_bytes) {
  enum { INSTRUCTION = 4 };
  int64_t vectors = 0;
  if (!vector_bytes || ELF_FIELD(elf, 0, Ehdr, e_machine) != EM_AARCH64) return 0;
  for (uint64_t end = at + bytes; at + INSTRUCTION <= end; at += INSTRUCTION) {
    uint32_t word = (uint32_t)elf_number(elf, at, INSTRUCTION);
    if ((word & 0xfffff81fu) == 0x043f501fu && word & 1u << 10)
      vectors += 32 - (int64_t)(word >> 5 & 31); /* six bits with a sign */
  }
  return vectors * vector_bytes;
}

/* The return address, a stack pointer that is moved to where a vector or a line of the cache begins, and pushed
 * arguments. */
static int64_t uncounted_bytes(const Machine *machine, const CompiledObject *compiled) {
  enum { WORD_BYTES = 8, LINE_BYTES = 64 };
  if (!machine->pushes) return WORD_BYTES + compiled->vector_bytes;
  int64_t moved = compiled->vector_bytes ? max_int(compiled->vector_bytes, LINE_BYTES) : 0;
  return WORD_BYTES + moved + WORD_BYTES * (int64_t)compiled->pushed_arguments;
}

/* Of what clang does not compile, as the few lines of assembly by which fibers change places: it is in .text, where
 * clang puts no function. NO_FRAME: it has no fixed size. */
static int64_t frame_of(const Elf *elf, const int64_t *frames, uint64_t section) {
  enum { ASSEMBLY_BYTES = 512 };
  bool is_assembly = !strcmp(elf_section_name(elf, elf_section(elf, section)), ".text");
  return frames[section] == NO_FRAME && is_assembly ? ASSEMBLY_BYTES : frames[section];
}

static void add_function(Reader *reader, Object *object, uint64_t symbol, int64_t frame) {
  CallGraph *graph = reader->graph;
  const Elf *elf = &object->elf;
  uint64_t section = ELF_FIELD(elf, symbol, Sym, st_shndx), value = ELF_FIELD(elf, symbol, Sym, st_value);
  const char *name = elf_text(elf, object->names + ELF_FIELD(elf, symbol, Sym, st_name));
  int index = (int)(object - reader->objects);
  uint64_t code = ELF_FIELD(elf, elf_section(elf, section), Shdr, sh_offset) + (value & ~(uint64_t)1);
  const CompiledObject *compiled = &reader->compiled[index];
  int64_t scalable = scalable_bytes(elf, code, ELF_FIELD(elf, symbol, Sym, st_size), compiled->vector_bytes);
  if (object->first[section] < 0) object->first[section] = graph->n_functions;
  *LIST_ADD(graph->arena, graph->functions, graph->n_functions, reader->capacity) =
      (Function){.name = name,
                 .object = index,
                 .section = section,
                 .is_global = ELF64_ST_BIND(ELF_FIELD(elf, symbol, Sym, st_info)) != STB_LOCAL,
                 .frame = frame + scalable + uncounted_bytes(object->machine, compiled)};
}

/* False: nothing can be said of it. */
static bool read_functions(Reader *reader, Object *object, const char *path) {
  Arena *arena = reader->graph->arena;
  Elf *elf = &object->elf;
  *elf = elf_open_object(path);
  object->machine = elf->bytes ? machine_of(elf) : NULL;
  uint64_t table = object->machine ? elf_section_of_kind(elf, SHT_SYMTAB) : 0;
  if (!table) return false;
  uint64_t n_sections = elf_section_count(elf);
  if (n_sections >= SHN_LORESERVE) return false; /* symbols do not say which is theirs */
  const int64_t *frames = stack_sizes_read(arena, elf);
  object->first = ARENA_ARRAY(arena, int, n_sections);
  for (uint64_t i = 0; i < n_sections; i++) object->first[i] = -1;
  object->symbols = ELF_FIELD(elf, table, Shdr, sh_offset);
  object->n_symbols = ELF_FIELD(elf, table, Shdr, sh_size) / ELF_STRUCT_BYTES(elf, Sym);
  object->names = ELF_FIELD(elf, elf_section(elf, ELF_FIELD(elf, table, Shdr, sh_link)), Shdr, sh_offset);
  for (uint64_t i = 0; i < object->n_symbols; i++) {
    uint64_t symbol = symbol_at(object, i), section = ELF_FIELD(elf, symbol, Sym, st_shndx);
    if (ELF64_ST_TYPE(ELF_FIELD(elf, symbol, Sym, st_info)) != STT_FUNC || !is_code(elf, section)) continue;
    int64_t frame = frame_of(elf, frames, section);
    if (frame == NO_FRAME) return false;
    add_function(reader, object, symbol, frame);
  }
  object->end = reader->graph->n_functions;
  return true;
}

/* ---- libc ---- */

/* What functions of libc take of the stack: twice what those of glibc 2.36 did, or more. Others have the last row's. */
static const struct {
  const char *names; /* with spaces around */
  int64_t bytes;
} library[] = {
    {" memcpy memmove memset memcmp bcmp strcmp strlen strchr strrchr strspn strstr strsep getenv sigfillset sigdelset "
     "syscall sched_yield clock_gettime getpid madvise mmap mmap64 munmap mprotect close open read sched_getaffinity "
     "sched_getcpu __sched_cpucount pthread_getaffinity_np pthread_setaffinity_np pthread_sigmask ",
     512},
    {" calloc aligned_alloc free pthread_join pthread_attr_init pthread_attr_destroy pthread_attr_setstacksize ",
     1 << 10},
    {" qsort ", 2 << 10},
    {" snprintf vsnprintf ", 4 << 10},
    {"", 8 << 10},
};

static int64_t library_bytes(Arena *arena, const char *name) {
  enum { ROWS = sizeof library / sizeof *library };
  int length = (int)strcspn(name, "@"); /* where a version begins, of runtime/glibc_floor.h */
  const char *word = arena_format(arena, " %.*s ", length, name);
  for (int i = 0; i < ROWS - 1; i++)
    if (strstr(library[i].names, word)) return library[i].bytes;
  return library[ROWS - 1].bytes;
}

/* ---- relocations ---- */

/* What a relocation is of, and where what it refers to may be. */
typedef struct Reference {
  Function *from; /* NULL: a table has it */
  bool is_call;
} Reference;

static void refer(Reader *reader, const Reference *it, Function *to) {
  if (!it->from) {
    to->is_listed = true;
  } else if (it->is_call) {
    *LIST_ADD(reader->graph->arena, it->from->callees, it->from->n_callees, it->from->callee_capacity) = to;
  } else {
    to->is_taken = true;
  }
}

static Function *global_named(const CallGraph *graph, const char *name) {
  for (int i = 0; i < graph->n_functions; i++)
    if (graph->functions[i].is_global && !strcmp(graph->functions[i].name, name)) return &graph->functions[i];
  return NULL;
}

static bool is_defined(const Reader *reader, const char *name) {
  for (int i = 0; i < reader->n_objects; i++) {
    const Object *object = &reader->objects[i];
    for (uint64_t s = 0; s < object->n_symbols; s++)
      if (!is_undefined(object, s) && !strcmp(symbol_name(object, s), name)) return true;
  }
  return false;
}

/* What each symbol is that another object has, or libc. */
static void find_others(Reader *reader, Object *object) {
  Arena *arena = reader->graph->arena;
  object->others = ARENA_ARRAY(arena, Other, object->n_symbols);
  for (uint64_t s = 0; s < object->n_symbols; s++) {
    const char *name = symbol_name(object, s);
    if (!*name || !is_undefined(object, s)) continue;
    object->others[s].function = global_named(reader->graph, name);
    if (!is_defined(reader, name)) object->others[s].library = library_bytes(arena, name);
  }
}

/* By code it is a call, however it is encoded: the address may come from a table of the linker's. */
static void refer_to_other(Reader *reader, const Reference *it, const Other *other) {
  Reference call = {it->from, true};
  if (other->function) refer(reader, it->from ? &call : it, other->function);
  if (it->from && other->library > it->from->library) it->from->library = other->library;
}

/* A function by its own symbol, or by its section's. A place in the section of the one that refers to it is no call. */
static void refer_to_section(Reader *reader, const Object *object, const Reference *it, uint64_t section) {
  if (it->from && it->from->section == section) return;
  for (int i = object->first[section]; i >= 0 && i < object->end; i++)
    if (reader->graph->functions[i].section == section) refer(reader, it, &reader->graph->functions[i]);
}

static void read_relocation(Reader *reader, Object *object, uint64_t at, uint64_t section) {
  const Elf *elf = &object->elf;
  uint64_t info = ELF_FIELD(elf, at, Rel, r_info); /* in the same place in Rela */
  uint64_t symbol = elf->wide ? ELF64_R_SYM(info) : ELF32_R_SYM(info);
  if (symbol >= object->n_symbols) return;
  unsigned kind = (unsigned)(elf->wide ? ELF64_R_TYPE(info) : ELF32_R_TYPE(info));
  uint64_t target = ELF_FIELD(elf, symbol_at(object, symbol), Sym, st_shndx);
  bool by_code = is_code(elf, section);
  if (by_code && object->first[section] < 0) return;
  Reference it = {by_code ? &reader->graph->functions[object->first[section]] : NULL, is_call(object->machine, kind)};
  if (is_code(elf, target))
    refer_to_section(reader, object, &it, target);
  else
    refer_to_other(reader, &it, &object->others[symbol]);
}

/* Of code, and of tables with addresses, which are written when the module is loaded. */
static void read_relocations(Reader *reader, Object *object) {
  const Elf *elf = &object->elf;
  uint64_t count = elf_section_count(elf);
  for (uint64_t i = 1; i < count; i++) {
    uint64_t header = elf_section(elf, i), kind = ELF_FIELD(elf, header, Shdr, sh_type);
    uint64_t section = ELF_FIELD(elf, header, Shdr, sh_info);
    if ((kind != SHT_REL && kind != SHT_RELA) || section >= count) continue;
    if (!(section_flags(elf, section) & (SHF_EXECINSTR | SHF_WRITE))) continue;
    uint64_t at = ELF_FIELD(elf, header, Shdr, sh_offset), end = at + ELF_FIELD(elf, header, Shdr, sh_size);
    uint64_t bytes = kind == SHT_REL ? ELF_STRUCT_BYTES(elf, Rel) : ELF_STRUCT_BYTES(elf, Rela);
    for (; at < end && at < elf->size; at += bytes) read_relocation(reader, object, at, section);
  }
}

bool call_graph_read(CallGraph *graph, Arena *arena, const CompiledObject *objects, int count) {
  *graph = (CallGraph){.arena = arena};
  Reader reader = {.graph = graph, .objects = ARENA_ARRAY(arena, Object, count), .compiled = objects};
  bool is_known = true;
  for (int i = 0; i < count && is_known; i++) {
    reader.n_objects++;
    is_known = !objects[i].hides_vectors && read_functions(&reader, &reader.objects[i], objects[i].path);
  }
  for (int i = 0; i < count && is_known; i++) {
    find_others(&reader, &reader.objects[i]);
    read_relocations(&reader, &reader.objects[i]);
  }
  /* Names are those of the files. */
  for (int i = 0; i < graph->n_functions; i++)
    graph->functions[i].name = arena_format(arena, "%s", graph->functions[i].name);
  for (int i = 0; i < reader.n_objects; i++) elf_close(&reader.objects[i].elf);
  return is_known;
}
