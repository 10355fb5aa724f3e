/* SPDX-License-Identifier: MIT */
#include "overwrites.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "same_file.h"
#include "support.h"
#include "tensors.h"

/* As the command line has it: "--output y=@y.npy" is {"--output ", "y", "=@", {"y.npy"}}. */
typedef struct NamedFile {
  const char *option, *name, *between;
  FilePlace place;
} NamedFile;

typedef struct NamedFiles {
  NamedFile *list;
  int count;
} NamedFiles;

static NamedFiles list_of(int most) { return (NamedFiles){.list = allocate(sizeof(NamedFile) * (size_t)most)}; }

static bool can_be_replaced(const char *path) {
  struct stat status;
  return !is_stdout(path) && (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

static void add_file(NamedFiles *files, const char *option, const char *name, const char *between, const char *path) {
  if (path && can_be_replaced(path)) files->list[files->count++] = (NamedFile){option, name, between, file_place(path)};
}

/* "@x.npy", or "2x3xf32=@x.bin"; a fill has none. */
static const char *path_of(const char *value) {
  const char *raw = strstr(value, "=@");
  return value[0] == '@' ? value + 1 : raw ? raw + 2 : NULL;
}

static void add_assigned(NamedFiles *files, const char *option, const Assignments *assigned) {
  for (int i = 0; i < assigned->count; i++)
    add_file(files, option, assigned->items[i].name, "=@", path_of(assigned->items[i].value));
}

static _Noreturn void refuse(const NamedFile *output, const NamedFile *other, const char *expected) {
  fail(EXIT_INPUT, "%s%s%s%s would replace the file of %s%s%s%s; expected %s", output->option, output->name,
       output->between, output->place.path, other->option, other->name, other->between, other->place.path, expected);
}

static void check_outputs(const NamedFiles *outputs, const NamedFiles *others, const char *expected) {
  for (int i = 0; i < outputs->count; i++)
    for (int k = 0; k < (others == outputs ? i : others->count); k++)
      if (same_place(&outputs->list[i].place, &others->list[k].place))
        refuse(&outputs->list[i], &others->list[k], expected);
}

void check_overwrites(const Arguments *arguments) {
  enum { OTHERS = 2 }; /* of each: the module and --weights; --trace and --html */
  NamedFiles read = list_of(OTHERS), inputs = list_of(arguments->inputs.count);
  NamedFiles outputs = list_of(arguments->outputs.count + OTHERS), pages = list_of(OTHERS);
  add_file(&read, "the module ", "", "", arguments->module);
  add_file(&read, "--weights=", "", "", arguments->weights);
  add_assigned(&inputs, "--input ", &arguments->inputs);
  add_file(&pages, "--trace=", "", "", arguments->trace);
  add_file(&pages, "--html=", "", "", arguments->html);
  add_assigned(&outputs, "--output ", &arguments->outputs);
  for (int i = 0; i < pages.count; i++) outputs.list[outputs.count++] = pages.list[i];
  check_outputs(&outputs, &read, "another file");
  check_outputs(&pages, &inputs, "another file");
  check_outputs(&outputs, &outputs, "a file for each");
  free(read.list);
  free(inputs.list);
  free(outputs.list);
  free(pages.list);
}
