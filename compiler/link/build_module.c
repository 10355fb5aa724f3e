/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"
#include "ir/mutable.h"
#include "link/archive.h"
#include "link/built_runtime.h"
#include "link/check_module.h"
#include "link/stack_need.h"
#include "link/stack_sizes.h"
#include "link/toolchain.h"
#include "machine/targets.h"
#include "support/clang_program.h"
#include "support/data_directory.h"
#include "support/files.h"
#include "support/numbers.h"
#include "support/process.h"

enum { MAX_ARGUMENTS = 64 };
static const size_t MAX_OBJECT_BYTES = (size_t)1 << 40;

/* No debug information and no paths: the same input gives the same bytes, wherever it is built. a * b + c within one
 * expression may be one FMA; -fno-trapping-math and -fno-math-errno change no value and let selects and sqrt be one
 * instruction. */
static const char *const common_args[] = {
    "-std=c11",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=on",
    "-fno-ident",
    "-fno-stack-protector",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-plt",
    "-fno-asynchronous-unwind-tables",
    "-D_GNU_SOURCE",
};

/* Without an operating system. */
static const char *const edge_args[] = {"-ffreestanding", "-DRNNCC_EDGE", NULL};

const char *const *source_args(Arena *arena, const Build *build, const Target *vectors) {
  const char **list = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS);
  int count = 0;
  for (size_t i = 0; i < sizeof common_args / sizeof *common_args; i++) list[count++] = common_args[i];
  for (const char *const *given = edge_args; build->edge && *given; given++) list[count++] = *given;
  list[count++] = build->name ? arena_format(arena, "-DRNNCC_PREFIX=%s_", build->name) : "-DRNNCC_BUILDING_MODULE";
  const char *const *features = vectors ? vectors->clang_args : NULL;
  while (features && *features) list[count++] = *features++;
  if (strstr(build->target->triple, "aarch64"))
    list[count++] = "-mno-outline-atomics"; /* the outlined ones live in libgcc */
  return list;
}

/* musl's headers and libc are beside those of glibc, which clang would find; these are Debian's folders. */
static bool has_musl(const Build *build) { return strstr(build->target->triple, "-linux-musl"); }

static const char *musl_headers(Arena *arena, const Build *build) {
  const char *folder = arena_format(arena, "/usr/include/%s", build->target->triple);
  if (access(arena_format(arena, "%s/stdlib.h", folder), R_OK) != 0)
    fatal_at(
        LOCATION_FILE(folder), EXIT_ENVIRONMENT,
        "expected musl's headers, found none; install them (Debian: apt-get install musl-dev; of another architecture, "
        "such as arm64, musl-dev:arm64 after dpkg --add-architecture arm64)");
  return folder;
}

/* clang's immintrin.h then leaves out the intrinsics of features that the target lacks, which are most of what clang
 * reads of a small unit. The macro is that of a vendor who asked for it; a clang that does not know it reads them all.
 */
static const char few_intrinsics[] = "-D__SCE__";

const char *const *clang_flags(Arena *arena, const Build *build) {
  const char **list = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS);
  int count = 0;
  list[count++] = arena_format(arena, "--target=%s", build->target->triple);
  if (strstr(build->target->triple, "x86_64")) list[count++] = few_intrinsics;
  if (has_musl(build)) {
    list[count++] = "-nostdlibinc";
    list[count++] = "-isystem";
    list[count++] = musl_headers(arena, build);
  }
  return list;
}

const char *const *clang_link_flags(Arena *arena, const Build *build) {
  const char **list = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS);
  int count = 0;
  list[count++] = "-fuse-ld=lld";
  list[count++] = arena_format(arena, "--target=%s", build->target->triple);
  if (has_musl(build) && !build->name) {
    list[count++] = "-nostdlib";
    list[count++] = arena_format(arena, "-L/usr/lib/%s", build->target->triple);
    list[count++] = "-Wl,--push-state,--no-as-needed,-lc,--pop-state";
  }
  return list;
}

static const char **add_all(const char **to, const char *const *list) {
  while (*list) *to++ = *list++;
  return to;
}

const char *const *clang_args(Arena *arena, const Build *build, const Target *vectors) {
  const char **list = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS + 4);
  const char **end = add_all(list, source_args(arena, build, vectors));
  add_all(end, clang_flags(arena, build));
  return list;
}

/* ---- running the tools ---- */

static const char *program_name(const Process *process) { return process->argv[0]; }

static void tell_failure(const Process *process, double seconds) {
  Location where = LOCATION_FILE(program_name(process));
  switch (process->outcome) {
  case PROCESS_OK:
    return;
  case PROCESS_NOT_FOUND:
    error_at(where, EXIT_ENVIRONMENT, "%s", clang_missing);
    return;
  case PROCESS_NOT_STARTED:
    error_at(where, EXIT_ENVIRONMENT, "cannot be started: %s", process->output);
    return;
  case PROCESS_TIMEOUT:
    error_at(where, EXIT_ENVIRONMENT, "did not finish within %.0f s", seconds);
    return;
  case PROCESS_FAILED:
    error_at(where, EXIT_ENVIRONMENT, "failed with status %d: %.2000s", process->status, process->output);
    if (process->confined && strstr(process->output, "ermission denied"))
      note_at(where, "it may write only in %s and open no connection; --sandbox=never lifts that", process->folder);
    return;
  }
}

static void run(Arena *arena, Process *processes, int count, const Build *build) {
  for (int i = 0; i < count; i++) processes[i].confined = clang_confined(build->sandbox);
  process_run_all(arena, processes, count, (int)sysconf(_SC_NPROCESSORS_ONLN), build->seconds);
}

/* As where there is no clang for any of them. */
static bool fails_like(const Process *a, const Process *b) {
  return a->outcome == b->outcome && a->status == b->status && !strcmp(a->output, b->output);
}

static bool is_told(const Process *processes, int index) {
  for (int i = 0; i < index; i++)
    if (fails_like(&processes[i], &processes[index])) return true;
  return false;
}

static void stop_on_failure(const Process *processes, int count, double seconds) {
  for (int i = 0; i < count; i++)
    if (!is_told(processes, i)) tell_failure(&processes[i], seconds);
  stop_on_errors();
}

/* ---- sources and objects ---- */

static const char runtime_source[] = "runtime.c";

static const char *object_of(Arena *arena, const char *source) { return file_with_suffix(arena, source, ".o"); }

static const char *object_in(Arena *arena, const char *folder, const char *source) {
  return arena_format(arena, "%s/%s", folder, object_of(arena, source));
}

/* Absolute, as clang runs in the unit's folder. */
static const char *include_arg(Arena *arena, const char *data_folder) {
  const char *folder = arena_format(arena, "%s/%s", data_directory(arena), data_folder);
  char whole[PATH_MAX];
  return arena_format(arena, "-I%s", realpath(folder, whole) ? whole : folder);
}

/* clang_args() and where the data folder's files are. */
static const char *const *whole_args(Arena *arena, const Build *build, const Target *vectors) {
  const char *const *common = clang_args(arena, build, vectors);
  const char **list = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS + 3);
  int count = 0;
  while (*common) list[count++] = *common++;
  list[count++] = include_arg(arena, "runtime");
  list[count++] = include_arg(arena, "templates");
  return list;
}

static const char *const *compile_command(Arena *arena, const Build *build, const char *source, const Target *vectors) {
  const char *const *common = whole_args(arena, build, vectors);
  const char **argv = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS + 8);
  int count = 0;
  argv[count++] = clang_program();
  while (*common) argv[count++] = *common++;
  const char *rest[] = {stack_sizes_arg, "-I.", "-c", source, "-o", object_of(arena, source)};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) argv[count++] = rest[i];
  return argv;
}

/* No start files, so no constructors; only what the module needs of libc; everything resolved before it runs. */
static const char *const shared_args[] = {
    "-shared",
    "-nostartfiles",
    "-Wl,-z,relro",
    "-Wl,-z,now",
    "-Wl,-z,noexecstack",
    "-Wl,-z,defs",
    "-Wl,--as-needed",
    "-Wl,--gc-sections",
    "-Wl,-O2",
    "-Wl,-s",
    "-Wl,--build-id=none",
    "-Wl,--exclude-libs,ALL",
    NULL,
};

/* Before 2.34 glibc's threads were a library of their own (runtime/glibc_floor.h); since then it is an empty one. */
static const char threads_arg[] = "-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,--pop-state";

/* One object of two: a library of it needs no index but of what an application calls. */
static const char *const object_args[] = {"-r", "-nostdlib", "-Wl,--strip-debug", "-Wl,--build-id=none", NULL};

const char *const *link_args(Arena *arena, const Build *build) {
  const char **list = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS);
  int count = 0;
  for (const char *const *given = build->name ? object_args : shared_args; *given; given++) list[count++] = *given;
  if (!build->name && strstr(build->target->triple, "-linux-gnu")) list[count++] = threads_arg;
  return list;
}

static const char *const *link_command(Arena *arena, const Units *units, const Build *build, const char *runtime,
                                       const char *output) {
  const char *const *common = link_args(arena, build);
  const char **argv = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS + 8 + units->count);
  int count = 0;
  argv[count++] = clang_program();
  while (*common) argv[count++] = *common++;
  const char *const *own = clang_link_flags(arena, build);
  while (*own) argv[count++] = *own++;
  for (int i = 0; i < units->count; i++) argv[count++] = object_of(arena, units->list[i]->file);
  argv[count++] = runtime;
  argv[count++] = "-o";
  argv[count++] = output;
  return argv;
}

/* Why sources do not compile that do elsewhere: the target's libc is not installed. */
static void check_libc(Arena *arena, const Build *build) {
  const char **argv = ARENA_ARRAY(arena, const char *, MAX_ARGUMENTS + 8);
  const char *const rest[] = {"-fsyntax-only", "-include", "stdlib.h", "-x", "c", "/dev/null"};
  const char **end = argv;
  *end++ = clang_program();
  end = add_all(end, clang_flags(arena, build));
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) *end++ = rest[i];
  Process clang = {.argv = argv, .folder = "."};
  run(arena, &clang, 1, build);
  if (clang.outcome != PROCESS_FAILED || !strstr(clang.output, "file not found")) return;
  const char *triple = build->target->triple;
  fatal_at(
      LOCATION_FILE(argv[0]), EXIT_ENVIRONMENT,
      "expected the headers of a libc of %s, found none; install it (Debian: apt-get install gcc-%s, with what that "
      "recommends)",
      triple, triple);
}

/* Why clang has failed, where it is not what it says of the unit: its age, or what is not installed. */
static void check_clang(Arena *arena, const Build *build) {
  clang_check_version(arena, build->target->oldest_clang);
  check_libc(arena, build);
}

static const Target *target_of(const Unit *unit) { return unit->program->graph->config->target; }

/* A line that clang complains of is some node's: libclang finds it. */
static void check_if_told(Arena *arena, const Unit *unit, const char *folder, const Build *build,
                          const Process *compiler) {
  if (compiler->outcome > PROCESS_FAILED || !*compiler->output) return;
  check_unit(arena, unit, folder, whole_args(arena, build, target_of(unit)));
}

/* The objects of the units and, if there is none yet, of the runtime. */
static void compile_sources(Arena *arena, const Units *units, const char *folder, const Build *build,
                            bool with_runtime) {
  Process *compilers = ARENA_ARRAY(arena, Process, units->count + 1);
  int count = 0;
  for (; count < units->count; count++) {
    const Unit *unit = units->list[count];
    compilers[count] = (Process){.argv = compile_command(arena, build, unit->file, target_of(unit)), .folder = folder};
  }
  if (with_runtime)
    compilers[count++] = (Process){.argv = compile_command(arena, build, runtime_source, NULL), .folder = folder};
  run(arena, compilers, count, build);
  if (compilers[0].outcome == PROCESS_FAILED) check_clang(arena, build);
  for (int i = 0; i < units->count; i++) check_if_told(arena, units->list[i], folder, build, &compilers[i]);
  stop_on_failure(compilers, count, build->seconds);
  for (int i = 0; i < units->count; i++) stack_sizes_hide(arena, object_in(arena, folder, units->list[i]->file));
  if (with_runtime) stack_sizes_hide(arena, object_in(arena, folder, runtime_source));
}

/* ---- the stack ---- */

/* The unit of the derivation of this one's weights; -1: there is none. */
static int derivation_of(const Units *units, int index) {
  const MutableWeights *mutables = units->list[index]->program->graph->mutables;
  for (int i = 0; i < units->count; i++)
    if (mutables && mutables->derivation && units->list[i]->program->graph == mutables->derivation) return i;
  return -1;
}

static int most_arguments(const Program *program) {
  enum { OF_HELPERS = 24 }; /* functions that kernels call */
  int most = OF_HELPERS;
  for (int i = 0; i < program->n_kernels; i++) most = (int)max_int(most, program->kernels[i].kernel->n_parameters);
  return most;
}

static void tell_stack_needs(Arena *arena, const Units *units, const char *folder, const Build *build,
                             const char *runtime) {
  StackUnit *list = ARENA_ARRAY(arena, StackUnit, units->count);
  for (int i = 0; i < units->count; i++) {
    const Unit *unit = units->list[i];
    const char *prefix = build->name ? build->name : "rnncc";
    list[i] = (StackUnit){
        .object = {.path = object_in(arena, folder, unit->file),
                   .vector_bytes = target_of(unit)->lanes * (int64_t)sizeof(float),
                   .hides_vectors = target_of(unit)->hides_vectors,
                   .pushed_arguments = most_arguments(unit->program)},
        .module = arena_format(arena, "%s_module%s%s", prefix, unit->name ? "_" : "", unit->name ? unit->name : ""),
        .derivation = derivation_of(units, i),
    };
  }
  write_stack_needs(arena, list, units->count, runtime);
}

static void write_library(Arena *arena, const char *object, const char *name, const char *output) {
  FileBytes bytes = file_read(arena, object, MAX_OBJECT_BYTES, LOCATION_FILE(object));
  archive_write(arena, output, bytes, arena_format(arena, "%s_module_query", name));
}

/* Puts the one that was built with rnncc in the place of what compiling would make. */
static bool take_built_runtime(Arena *arena, const Build *build, const char *text, const char *folder) {
  FileBytes built = built_runtime(arena, build, text);
  if (built.size) file_write(arena, object_in(arena, folder, runtime_source), built.data, built.size);
  return built.size > 0;
}

void build_module(const Units *units, const char *folder, const Build *build, const char *runtime, const char *output) {
  Arena *arena = units->list[0]->program->arena;
  bool built = !runtime && take_built_runtime(arena, build, units_runtime_text(units), folder);
  compile_sources(arena, units, folder, build, !runtime && !built);
  tell_stack_needs(arena, units, folder, build, runtime ? runtime : object_in(arena, folder, runtime_source));
  if (!runtime) runtime = object_of(arena, runtime_source);
  /* Within the folder and from there into place: lld takes a % anywhere in the path for a digit to make up. */
  const char *linked = build->name ? "module.o" : "module.so";
  Process linker = {.argv = link_command(arena, units, build, runtime, linked), .folder = folder};
  run(arena, &linker, 1, build);
  stop_on_failure(&linker, 1, build->seconds);
  linked = arena_format(arena, "%s/%s", folder, linked);
  if (build->name) {
    write_library(arena, linked, build->name, output);
    return;
  }
  check_module(linked, build->target, "rnncc_module_query");
  file_copy(arena, linked, output);
}

const char *build_runtime(Arena *arena, const Build *build, const char *text, const char *folder) {
  if (!take_built_runtime(arena, build, text, folder)) return compile_runtime(arena, build, text, folder);
  return object_in(arena, folder, runtime_source);
}

const char *compile_runtime(Arena *arena, const Build *build, const char *text, const char *folder) {
  file_write(arena, arena_format(arena, "%s/%s", folder, runtime_source), text, strlen(text));
  Process compiler = {.argv = compile_command(arena, build, runtime_source, NULL), .folder = folder};
  run(arena, &compiler, 1, build);
  stop_on_failure(&compiler, 1, build->seconds);
  const char *object = object_in(arena, folder, runtime_source);
  stack_sizes_hide(arena, object);
  return object;
}
