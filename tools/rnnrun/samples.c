/* SPDX-License-Identifier: MIT */
#include "samples.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

/* Of an input: its files, or none. */
typedef struct Files {
  glob_t found;
  int count; /* 0: it is no pattern */
} Files;

/* A file whose own name has such characters is itself. */
static int is_pattern(const char *value) {
  return value[0] == '@' && strpbrk(value, "*?[") != NULL && access(value + 1, F_OK) != 0;
}

static Files files_of(const Assignment *input) {
  Files files = {0};
  if (!is_pattern(input->value)) return files;
  int status = glob(input->value + 1, GLOB_ERR, NULL, &files.found);
  if (status == GLOB_NOMATCH) fail(EXIT_INPUT, "--input %s=%s: no file matches", input->name, input->value);
  if (status != 0) fail(EXIT_INPUT, "--input %s=%s: %s", input->name, input->value, strerror(errno));
  files.count = (int)files.found.gl_pathc;
  return files;
}

static int count_of(const Arguments *arguments, const Files *files) {
  const Assignments *inputs = &arguments->inputs;
  int count = 0, first = 0;
  for (int i = 0; i < inputs->count; i++) {
    if (!files[i].count) continue;
    if (count && count != files[i].count)
      fail(EXIT_INPUT, "--input: expected as many files of each pattern, found %d of %s and %d of %s", count,
           inputs->items[first].name, files[i].count, inputs->items[i].name);
    if (!count) count = files[i].count, first = i;
  }
  if (count && arguments->samples > count)
    fail(EXIT_INPUT, "--samples: expected at most %d, as many as files match, found %d", count, arguments->samples);
  return arguments->samples ? arguments->samples : count ? count : 1;
}

static char *text_of(const char *format, const char *text, int64_t number) {
  char *made;
  if (asprintf(&made, format, text, (long long)number) < 0) fail(EXIT_RESOURCE, "out of memory");
  return made;
}

/* The value of an input in the k-th sample; the caller frees it. */
static char *value_of(const Assignment *input, const Files *files, int k) {
  int64_t seed = 0;
  if (files->count) return text_of("@%s", files->found.gl_pathv[k], 0);
  if (strcmp(input->value, "random") != 0 && strncmp(input->value, "random:", 7) != 0)
    return text_of("%s", input->value, 0);
  if (input->value[6] == ':' && !parse_integer(input->value + 7, &seed)) return text_of("%s", input->value, 0);
  return text_of("%s:%lld", "random", (int64_t)((uint64_t)seed + (uint64_t)k));
}

Samples samples_of(const Arguments *arguments) {
  const Assignments *inputs = &arguments->inputs;
  Files *files = allocate(sizeof *files * (size_t)inputs->count);
  for (int i = 0; i < inputs->count; i++) files[i] = files_of(&inputs->items[i]);
  Samples samples = {.count = count_of(arguments, files)};
  samples.arguments = allocate(sizeof *samples.arguments * (size_t)samples.count);
  for (int k = 0; k < samples.count; k++) {
    Arguments *sample = &samples.arguments[k];
    *sample = *arguments;
    sample->inputs.items = allocate(sizeof *sample->inputs.items * (size_t)inputs->count);
    for (int i = 0; i < inputs->count; i++)
      sample->inputs.items[i] = (Assignment){inputs->items[i].name, value_of(&inputs->items[i], &files[i], k)};
  }
  for (int i = 0; i < inputs->count; i++)
    if (files[i].count) globfree(&files[i].found);
  free(files);
  return samples;
}

void samples_free(Samples *samples) {
  for (int k = 0; k < samples->count; k++) {
    Assignments *inputs = &samples->arguments[k].inputs;
    for (int i = 0; i < inputs->count; i++) free((char *)inputs->items[i].value);
    free(inputs->items);
  }
  free(samples->arguments);
}
