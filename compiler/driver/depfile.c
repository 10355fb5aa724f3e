/* SPDX-License-Identifier: MIT */
#include "driver/depfile.h"

#include <string.h>

#include "driver/output.h"
#include "support/files.h"

/* As GNU Make and Ninja read names. */
static void add_name(Text *out, const char *name) {
  for (; *name; name++) {
    if (*name == ' ' || *name == '#' || *name == ':') text_add(out, "\\");
    if (*name == '$') text_add(out, "$");
    text_add(out, "%c", *name);
  }
}

static void add_dependency(Text *rule, Text *alone, const char *path) {
  text_add(rule, " \\\n  ");
  add_name(rule, path);
  add_name(alone, path);
  text_add(alone, ":\n");
}

static const char *path_of(Arena *arena, const ModelFile *file) {
  if (!file->base) return file->name;
  return arena_format(arena, "%.*s%s", (int)(file_last_part(file->base) - file->base), file->base, file->name);
}

/* A file that the option names, in place of one of its words. */
static bool names_file(const char *value, const char *const *words) {
  for (; value && *words; words++)
    if (!strcmp(value, *words)) return false;
  return value != NULL;
}

/* Each file has a rule of its own, too: one that is gone means that the output is made anew, not an error. */
void write_depfile(const Compilation *c) {
  const Options *options = c->options;
  if (!options->depfile) return;
  Text rule = text_new(c->arena), alone = text_new(c->arena);
  add_name(&rule, output_path(options, c->arena));
  text_add(&rule, ":");
  for (int i = 0; i < c->files.count; i++) add_dependency(&rule, &alone, path_of(c->arena, c->files.list[i]));
  if (names_file(options->schedules, (const char *const[]){"none", NULL}))
    add_dependency(&rule, &alone, options->schedules);
  if (names_file(options->machine_given, (const char *const[]){"native", "typical", NULL}))
    add_dependency(&rule, &alone, options->machine_given);
  text_add(&rule, "\n%s", alone.data);
  file_write(c->arena, options->depfile, rule.data, rule.length);
}
