/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "link/toolchain.h"
#include "machine/targets.h"
#include "support/data_directory.h"
#include "support/files.h"

enum { MAX_SOURCE = 1 << 22, MAX_SOURCES = 256 };

static void make_folder(const char *path) {
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot create the folder: %s", strerror(errno));
}

static void copy_file(Arena *arena, const char *from, const char *to) {
  FileBytes bytes = file_read(arena, from, MAX_SOURCE, LOCATION_FILE(from));
  file_write(arena, to, bytes.data, bytes.size);
}

typedef struct Names {
  int count;
  const char *names[MAX_SOURCES];
} Names;

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* NULL at the end of the listing. */
static const struct dirent *next_entry(DIR *listing, const char *folder) {
  errno = 0;
  const struct dirent *entry = readdir(listing);
  if (!entry && errno) fatal_at(LOCATION_FILE(folder), EXIT_ENVIRONMENT, "cannot list: %s", strerror(errno));
  return entry;
}

/* Does the name end in one of these: ".c.h"? */
static bool ends_in(const char *name, const char *endings) {
  const char *dot = strrchr(name, '.'), *found = dot ? strstr(endings, dot) : NULL;
  return found && (found[strlen(dot)] == '.' || !found[strlen(dot)]);
}

/* The files of a data folder whose names end so. Sorted, for the same bytes on every machine. */
static Names list_folder(Arena *arena, const char *folder, const char *endings) {
  Names found = {0};
  DIR *listing = opendir(folder);
  if (!listing)
    fatal_at(LOCATION_FILE(folder), EXIT_ENVIRONMENT, "cannot list: %s%s", strerror(errno),
             errno == ENOENT ? " (is rnncc installed whole?)" : "");
  for (const struct dirent *entry; (entry = next_entry(listing, folder));) {
    if (!ends_in(entry->d_name, endings)) continue;
    if (found.count == MAX_SOURCES) bug("more than %d files in %s", MAX_SOURCES, folder);
    found.names[found.count++] = arena_string(arena, entry->d_name);
  }
  closedir(listing);
  qsort(found.names, (size_t)found.count, sizeof *found.names, compare_names);
  return found;
}

static void copy_folder(Arena *arena, const char *from, const char *to, const char *endings) {
  Names files = list_folder(arena, from, endings);
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
  Names sources = list_folder(arena, runtime, ".c");
  if (sources.count == 0)
    fatal_at(LOCATION_FILE(runtime), EXIT_ENVIRONMENT,
             "expected the runtime's sources, found none (is rnncc installed whole?)");
  text_add(text, "#define RNNCC_ONE_SOURCE\n#include \"glibc_floor.h\"\n");
  for (int i = 0; i < sources.count; i++) text_add(text, "#include \"%s\"\n", sources.names[i]);
}

/* What $RNNCC_ISA can be, of several targets. */
static void name_isas(Text *text, const Units *units) {
  if (units->count == units->networks) return;
  text_add(text, "#define RNNCC_ISAS \"");
  for (int i = 0; i < units->count; i += units->networks) {
    const Target *target = units->list[i]->program->graph->config->target;
    text_add(text, "%s%s or %s", i ? ", " : "", target->isa, target->name);
  }
  text_add(text, "\"\n");
}

/* The units' modules, each with the place of its target's first one. */
static void name_modules(Text *text, const Units *units) {
  text_add(text, "#define RNNCC_MODULES(EACH)");
  for (int i = 0; i < units->count; i++)
    text_add(text, " EACH(RNNCC_GLOBAL(module_%s), %d)", units->list[i]->name, i / units->networks * units->networks);
  text_add(text, "\n#define RNNCC_NETWORKS %d\n", units->networks);
}

void write_runtime(Arena *arena, const char *folder, bool edge, const Units *units) {
  Text text = text_new(arena);
  if (units && units->list[0]->name) {
    name_modules(&text, units);
    name_isas(&text, units);
  }
  if (edge)
    add_edge_runtime(&text);
  else
    add_whole_runtime(&text);
  file_write(arena, arena_format(arena, "%s/runtime.c", folder), text.data, text.length);
}

static void copy_runtime(Arena *arena, const char *from, const char *folder, bool edge) {
  copy_folder(arena, from, folder, edge ? ".h.def" : ".c.h.def");
  if (!edge) return;
  make_folder(arena_format(arena, "%s/edge", folder));
  for (size_t i = 0; i < sizeof edge_sources / sizeof *edge_sources; i++)
    copy_file(arena, arena_format(arena, "%s/%s", from, edge_sources[i]),
              arena_format(arena, "%s/%s", folder, edge_sources[i]));
}

void write_units(const Units *units, const char *folder) {
  const Program *program = units->list[0]->program;
  Arena *arena = program->arena;
  make_folder(folder);
  for (int i = 0; i < units->count; i++) {
    const Unit *unit = units->list[i];
    file_write(arena, arena_format(arena, "%s/%s", folder, unit->file), unit->text.data, unit->text.length);
  }
  const WeightsFile *weights = program->weights_file;
  file_write_parts(arena, arena_format(arena, "%s/weights.bin", folder), weights->parts, weights->n_parts);
  write_runtime(arena, folder, program->graph->config->edge, units);
}

void write_sources(const Units *units, const char *folder, const char *name) {
  const Program *program = units->list[0]->program;
  const Config *config = program->graph->config;
  Arena *arena = program->arena;
  const char *data = data_directory(arena);
  copy_runtime(arena, arena_format(arena, "%s/runtime", data), folder, config->edge);
  copy_folder(arena, arena_format(arena, "%s/templates", data), folder, ".h");
  const char *simd = arena_format(arena, "%s/simd", folder);
  make_folder(simd);
  copy_folder(arena, arena_format(arena, "%s/templates/simd", data), simd, ".h");
  write_build_files(units, &(Build){.target = config->target, .name = name, .edge = config->edge}, folder);
}
