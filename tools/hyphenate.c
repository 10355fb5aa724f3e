/* SPDX-License-Identifier: MIT */
/*
 * Hyphenates a text with the shipped network: hyphenate MODULE.so [TEXT]. TEXT is also timed; without it, standard
 * input is filtered.
 *
 * An application of a compiled module, small enough to read: it loads the module, runs it on each word as it comes
 * (dimension T is the word's length), and puts a hyphen wherever the network is more sure of a break than not.
 * Anything that is not a word of ASCII letters, or is longer than the network was compiled for, passes unchanged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rnncc_loader.h"

enum {
  MAX_LETTERS = 64,   /* letters of a word */
  PASSES = 2000,      /* over the text, to time it: this maximum, */
  PASSES_US = 200000, /* and no more once this time has passed */
};

typedef struct Hyphenator {
  rnncc_library library;
  rnncc_model *model;
  rnncc_context *context;
} Hyphenator;

static _Noreturn void die(const char *what, const char *why) {
  fprintf(stderr, "hyphenate: %s: %s\n", what, why);
  exit(5);
}

static Hyphenator load(const char *path) {
  Hyphenator hyphenator;
  char error[256];
  const char *why = "";
  if (rnncc_load(path, &hyphenator.library, error, sizeof error)) die(path, error);
  const rnncc_api *api = hyphenator.library.api;
  if (strcmp(api->info->name, "hyphenate") != 0) die(path, "not the module of models/hyphenate.json");
  rnncc_options options = {.struct_size = sizeof options, .threads = 1};
  if (api->model_create(&options, &hyphenator.model, &why)) die(path, why);
  if (api->context_create(hyphenator.model, NULL, 0, &hyphenator.context, NULL)) die(path, "no memory for a context");
  api->warmup(hyphenator.context);
  return hyphenator;
}

static void unload(Hyphenator *hyphenator) {
  hyphenator->library.api->context_destroy(hyphenator->context);
  hyphenator->library.api->model_destroy(hyphenator->model);
  rnncc_unload(&hyphenator->library);
}

/* For each of the word's `length` letters (1 to MAX_LETTERS), the probability that the word may break after it. */
static void probabilities(const Hyphenator *hyphenator, const char *word, int32_t length, float after[MAX_LETTERS]) {
  int64_t letters[MAX_LETTERS];
  for (int32_t i = 0; i < length; i++) letters[i] = (word[i] | 0x20) - 'a' + 1;
  const rnncc_tensor inputs[] = {
      {.struct_size = sizeof(rnncc_tensor),
       .data = letters,
       .bytes = sizeof letters,
       .dtype = RNNCC_I64,
       .rank = 2,
       .shape = {1, length}},
      {.struct_size = sizeof(rnncc_tensor),
       .data = &length,
       .bytes = sizeof length,
       .dtype = RNNCC_I32,
       .rank = 1,
       .shape = {1}},
  };
  rnncc_tensor output = {
      .struct_size = sizeof output, .data = after, .bytes = MAX_LETTERS * sizeof *after, .dtype = RNNCC_F32};
  const rnncc_api *api = hyphenator->library.api;
  if (api->run(hyphenator->context, inputs, 2, &output, 1)) die("run", api->last_error(hyphenator->context));
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Length of the text's first piece: letters, or what lies between words. */
static int piece_length(const char *text) {
  int length = 1;
  while (text[length] && is_letter(text[length]) == is_letter(text[0])) length++;
  return length;
}

/* One pass over the text: to `out`, unless that is NULL, goes the text with its hyphens. Returns the number of words.
 */
static int hyphenate(const Hyphenator *hyphenator, const char *text, FILE *out) {
  int words = 0;
  for (int length; *text; text += length) {
    float after[MAX_LETTERS];
    length = piece_length(text);
    int is_word = is_letter(*text) && length <= MAX_LETTERS;
    if (is_word) probabilities(hyphenator, text, length, after);
    for (int i = 0; out && i < length; i++) fprintf(out, is_word && after[i] > 0.5f ? "%c-" : "%c", text[i]);
    words += is_word;
  }
  return words;
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median time of a pass over the text. */
static double pass_us(const Hyphenator *hyphenator, const char *text) {
  double passes[PASSES], begin = now_us(), start = begin;
  int count = 0;
  do {
    hyphenate(hyphenator, text, NULL);
    double end = now_us();
    passes[count++] = end - start;
    start = end;
  } while (count < PASSES && start - begin < PASSES_US);
  qsort(passes, (size_t)count, sizeof *passes, by_value);
  return passes[count / 2];
}

/* Standard input, all of it. */
static char *read_text(void) {
  char *text = NULL;
  size_t size = 0;
  if (getdelim(&text, &size, '\0', stdin) < 0) die("standard input", "no text");
  return text;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3 || argv[1][0] == '-') {
    fprintf(stderr, "usage: hyphenate MODULE.so [TEXT]   without TEXT: standard input, and no timing\n");
    return 2;
  }
  char *text = argc == 3 ? argv[2] : read_text();
  Hyphenator hyphenator = load(argv[1]);
  int words = hyphenate(&hyphenator, text, stdout);
  if (argc == 3) printf("\n");
  fflush(stdout); /* the text before its timing, where both go to one file */
  if (argc == 3 && words) fprintf(stderr, "%d words, %.1f us a word\n", words, pass_us(&hyphenator, text) / words);

  unload(&hyphenator);
  if (argc < 3) free(text);
}
