/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "link/toolchain.h"
#include "machine/targets.h"
#include "support/data_directory.h"
#include "support/files.h"
#include "support/folder.h"

enum { MAX_SOURCE = 1 << 22 };

static void copy_file(Arena *arena, const char *from, const char *to) {
  FileBytes bytes = file_read(arena, from, MAX_SOURCE, LOCATION_FILE(from));
  file_write(arena, to, bytes.data, bytes.size);
}

static void copy_folder(Arena *arena, const char *from, const char *to, const char *endings) {
  FileNames files = folder_list(arena, from, endings);
  for (int i = 0; i < files.count; i++)
    copy_file(arena, arena_format(arena, "%s/%s", from, files.names[i]),
              arena_format(arena, "%s/%s", to, files.names[i]));
}

/* Of a device's runtime, in which edge.c has the place of all others. */
static const char *const edge_sources[] = {"check.c",  "context.c", "cpu.c",  "edge/edge.c",
                                           "module.c", "run.c",     "state.c"};

static void add_edge_runtime(Text *text) {
  text_add(text, "#define RNNCC_ONE_SOURCE\n");
  for (size_t i = 0; i < sizeof edge_sources / sizeof *edge_sources; i++)
    text_add(text, "#include \"%s\"\n", edge_sources[i]);
}

static void add_whole_runtime(Text *text) {
  Arena *arena = text->arena;
  const char *runtime = arena_format(arena, "%s/runtime", data_directory(arena));
  FileNames sources = folder_list(arena, runtime, ".c");
  if (sources.count == 0)
    fatal_at(LOCATION_FILE(runtime), EXIT_ENVIRONMENT,
             "expected the runtime's sources, found none (is rnncc installed whole?)");
  text_add(text, "#define RNNCC_ONE_SOURCE\n#include \"glibc_floor.h\"\n");
  for (int i = 0; i < sources.count; i++) text_add(text, "#include \"%s\"\n", sources.names[i]);
}

/* What $RNNCC_ISA can be, of several targets. */
static void name_isas(Text *text, const Units *units) {
  if (units->modules == units->networks) return;
  text_add(text, "#define RNNCC_ISAS \"");
  for (int i = 0; i < units->modules; i += units->networks) {
    const Target *target = units->list[i]->program->graph->config->target;
    text_add(text, "%s%s or %s", i ? ", " : "", target->isa, target->name);
  }
  text_add(text, "\"\n");
}

/* The units' modules, each with the place of its target's first one. */
static void name_modules(Text *text, const Units *units) {
  text_add(text, "#define RNNCC_MODULES(EACH)");
  for (int i = 0; i < units->modules; i++)
    text_add(text, " EACH(RNNCC_GLOBAL(module_%s), %d)", units->list[i]->name, i / units->networks * units->networks);
  text_add(text, "\n#define RNNCC_NETWORKS %d\n", units->networks);
}

static bool any_can_change(const Units *units) {
  for (int i = 0; i < units->count; i++)
    if (units->list[i]->program->graph->mutables) return true;
  return false;
}

const char *runtime_text(Arena *arena, bool edge, bool can_change, const Units *units) {
  Text text = text_new(arena);
  if (units && units->list[0]->name) {
    name_modules(&text, units);
    name_isas(&text, units);
  }
  if (units && units->list[0]->program->graph->n_parameters) text_add(&text, "#define RNNCC_TRAINS\n");
  if (!edge && can_change) text_add(&text, "#define RNNCC_MUTABLE\n");
  if (edge)
    add_edge_runtime(&text);
  else
    add_whole_runtime(&text);
  return text.data;
}

const char *units_runtime_text(const Units *units) {
  const Program *program = units->list[0]->program;
  return runtime_text(program->arena, program->graph->config->edge, any_can_change(units), units);
}

static void copy_runtime(Arena *arena, const char *from, const char *folder, bool edge) {
  copy_folder(arena, from, folder, edge ? ".h.def" : ".c.h.def");
  if (!edge) return;
  folder_make(arena_format(arena, "%s/edge", folder));
  for (size_t i = 0; i < sizeof edge_sources / sizeof *edge_sources; i++)
    copy_file(arena, arena_format(arena, "%s/%s", from, edge_sources[i]),
              arena_format(arena, "%s/%s", folder, edge_sources[i]));
}

void write_units(const Units *units, const char *folder) {
  const Program *program = units->list[0]->program;
  Arena *arena = program->arena;
  folder_make(folder);
  for (int i = 0; i < units->count; i++) {
    const Unit *unit = units->list[i];
    file_write(arena, arena_format(arena, "%s/%s", folder, unit->file), unit->text.data, unit->text.length);
  }
  const WeightsFile *weights = program->weights_file;
  file_write_parts(arena, arena_format(arena, "%s/weights.bin", folder), weights->parts, weights->n_parts);
  const char *runtime = units_runtime_text(units);
  file_write(arena, arena_format(arena, "%s/runtime.c", folder), runtime, strlen(runtime));
}

void write_sources(const Units *units, const char *folder, const char *name) {
  const Program *program = units->list[0]->program;
  const Config *config = program->graph->config;
  Arena *arena = program->arena;
  const char *data = data_directory(arena);
  copy_runtime(arena, arena_format(arena, "%s/runtime", data), folder, config->edge);
  copy_folder(arena, arena_format(arena, "%s/templates", data), folder, ".h");
  const char *simd = arena_format(arena, "%s/simd", folder);
  folder_make(simd);
  copy_folder(arena, arena_format(arena, "%s/templates/simd", data), simd, ".h");
  write_build_files(units, &(Build){.target = config->target, .name = name, .edge = config->edge}, folder);
}
