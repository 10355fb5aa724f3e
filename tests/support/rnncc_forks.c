/* SPDX-License-Identifier: MIT */
/*
 * rnncc for modules that tests compile by the thousand: one process that has loaded libclang and read the headers of
 * the templates, and forks for each run of rnncc. Of a small model these two are a third of what rnncc does itself.
 * Runs are read from stdin, words that end in NUL:
 *
 *     PLACE FOLDER COUNT NAME=VALUE... COUNT ARGUMENT...
 *
 * A run has that working directory, environment and those arguments, and writes to PLACE/stdout and PLACE/stderr. Its
 * exit status is a line on stdout, as Python has it: of a signal the negative number.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/diagnostics.h"
#include "template/specialise.h"

int rnncc_main(int argc, char **argv); /* compiler/main.c */

static const Location STDIN = {.byte = -1};

/* A kernel for each number of lanes that targets have: what it includes stays with libclang. */
static void warm_up(void) {
  Arena *arena = arena_new();
  for (int lanes = 4; lanes <= 16; lanes *= 2) specialise_unnamed(kernel_spec_new(arena, "copy_strided"), lanes);
  arena_free(arena);
}

/* NULL: there is none. */
static char *read_word(Arena *arena) {
  char *line = NULL;
  size_t capacity = 0;
  bool found = getdelim(&line, &capacity, 0, stdin) >= 0;
  char *word = found ? arena_string(arena, line) : NULL;
  free(line);
  return word;
}

typedef struct Words {
  int count;
  char **list; /* NULL-terminated */
} Words;

static Words read_words(Arena *arena) {
  const char *count = read_word(arena);
  if (!count) fatal_at(STDIN, EXIT_INVALID, "expected a count of words");
  Words words = {.count = atoi(count)};
  words.list = ARENA_ARRAY(arena, char *, words.count + 1);
  for (int i = 0; i < words.count; i++) words.list[i] = read_word(arena);
  words.list[words.count] = NULL;
  return words;
}

static void reopen(Arena *arena, const char *folder, const char *name, FILE *stream, const char *mode) {
  const char *path = arena_format(arena, "%s/%s", folder, name);
  if (!freopen(path, mode, stream)) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot be opened");
}

static _Noreturn void become_rnncc(Arena *arena, const char *place, const char *folder, Words environment,
                                   Words arguments) {
  reopen(arena, place, "stdout", stdout, "w");
  reopen(arena, place, "stderr", stderr, "w");
  reopen(arena, "/dev", "null", stdin, "r");
  if (chdir(folder) != 0) fatal_at(LOCATION_FILE(folder), EXIT_ENVIRONMENT, "%s", strerror(errno));
  environ = environment.list;
  exit(rnncc_main(arguments.count, arguments.list));
}

/* The status; false at the end of stdin. */
static bool run_next(int *status) {
  Arena *arena = arena_new();
  const char *place = read_word(arena);
  if (!place) return false;
  const char *folder = read_word(arena);
  Words environment = read_words(arena), arguments = read_words(arena);
  pid_t child = fork();
  if (child < 0) fatal_at(STDIN, EXIT_ENVIRONMENT, "cannot fork");
  if (child == 0) become_rnncc(arena, place, folder, environment, arguments);
  while (waitpid(child, status, 0) < 0) continue;
  arena_free(arena);
  return true;
}

int main(void) {
  warm_up();
  for (int status; run_next(&status); fflush(stdout))
    printf("%d\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
  return EXIT_OK;
}
