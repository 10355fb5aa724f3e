/* SPDX-License-Identifier: MIT */
#include "link/toolchain.h"
#include "machine/targets.h"
#include "support/data_directory.h"
#include "support/files.h"

enum { MAX_SOURCE = 1 << 22 };

static void add_copy(SourceFolder *folder, const char *from, const char *name) {
  const char *path = arena_format(folder->arena, "%s/%s", from, name);
  source_folder_add_copy(folder, name, file_read(folder->arena, path, MAX_SOURCE, LOCATION_FILE(path)));
}

static void add_copies(SourceFolder *folder, const char *from, const char *endings) {
  FileNames files = folder_list(folder->arena, from, endings);
  for (int i = 0; i < files.count; i++) add_copy(folder, from, files.names[i]);
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

static void add_units(SourceFolder *folder, const Units *units) {
  for (int i = 0; i < units->count; i++)
    source_folder_add(folder, units->list[i]->file, bytes_of_text(units->list[i]->text.data), SOURCE_BEGINS);
  const WeightsFile *weights = units->list[0]->program->weights_file;
  source_folder_add_parts(folder, "weights.bin", weights->parts, weights->n_parts);
  source_folder_add_copy(folder, "runtime.c", bytes_of_text(units_runtime_text(units)));
}

static void add_runtime(SourceFolder *folder, const char *data, bool edge) {
  const char *from = arena_format(folder->arena, "%s/runtime", data);
  add_copies(folder, from, edge ? ".h.def" : ".c.h.def");
  if (!edge) return;
  source_folder_add_folder(folder, "edge");
  for (size_t i = 0; i < sizeof edge_sources / sizeof *edge_sources; i++) add_copy(folder, from, edge_sources[i]);
}

static void add_templates(SourceFolder *folder, const char *data) {
  const char *from = arena_format(folder->arena, "%s/templates", data);
  FileNames vocabulary = folder_list(folder->arena, arena_format(folder->arena, "%s/simd", from), ".h");
  add_copies(folder, from, ".h");
  source_folder_add_folder(folder, "simd");
  for (int i = 0; i < vocabulary.count; i++)
    add_copy(folder, from, arena_format(folder->arena, "simd/%s", vocabulary.names[i]));
}

void write_units(const Units *units, const char *path) {
  SourceFolder folder = {.arena = units->list[0]->program->arena, .path = path};
  add_units(&folder, units);
  source_folder_write(&folder);
}

/* The build files first: if writing ends before its end, they say whose folder it is. */
void write_sources(const Units *units, const char *path, const char *name) {
  const Program *program = units->list[0]->program;
  const Config *config = program->graph->config;
  SourceFolder folder = {.arena = program->arena, .path = path};
  const char *data = data_directory(folder.arena);
  add_build_files(&folder, units, &(Build){.target = config->target, .name = name, .edge = config->edge});
  add_units(&folder, units);
  add_runtime(&folder, data, config->edge);
  add_templates(&folder, data);
  source_folder_check(&folder);
  source_folder_write(&folder);
}
