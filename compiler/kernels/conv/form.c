/* SPDX-License-Identifier: MIT */
#include "kernels/conv/form.h"

#include <stdlib.h>
#include <string.h>

#include "support/text.h"

enum { MAX_DIGITS = 7 };

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && !strncmp(text, word, length);
}

const ConvAlgorithm *form_algorithm(const char *form) {
  const ConvAlgorithm *const *algorithm = convolution_algorithms;
  while (*algorithm && !is_word(form, strcspn(form, ","), (*algorithm)->name)) algorithm++;
  return *algorithm;
}

/* Which of the knobs `part` names, "oc=2"; -1: none of them, or it gives no number. */
static int knob_of(const ConvAlgorithm *algorithm, const char *part, size_t length) {
  size_t name = strcspn(part, "="), digits = name < length ? strspn(part + name + 1, "0123456789") : 0;
  if (digits == 0 || digits > MAX_DIGITS || name + 1 + digits != length) return -1;
  for (int i = 0; algorithm->knobs[i]; i++)
    if (is_word(part, name, algorithm->knobs[i])) return i;
  return -1;
}

const char *form_wrong(const char *form) {
  const ConvAlgorithm *algorithm = form_algorithm(form);
  bool given[MAX_CONV_KNOBS] = {false};
  if (!algorithm) return form;
  for (const char *part = form + strlen(algorithm->name); *part; part += strcspn(part, ",")) {
    part++;
    int knob = knob_of(algorithm, part, strcspn(part, ","));
    if (knob < 0 || given[knob]) return part;
    given[knob] = true;
  }
  return NULL;
}

int form_read(const char *form, ConvKnobs *knobs) {
  const ConvAlgorithm *algorithm = form_algorithm(form);
  int count = 0;
  for (const char *part = strchr(form, ','); part; part = strchr(part, ','), count++) {
    part++;
    int knob = knob_of(algorithm, part, strcspn(part, ","));
    knobs->value[knob] = (int)strtol(part + strlen(algorithm->knobs[knob]) + 1, NULL, 10);
  }
  return count;
}

bool form_is_whole(const char *form) {
  const ConvAlgorithm *algorithm = form_algorithm(form);
  ConvKnobs knobs;
  int named = form_read(form, &knobs);
  return !algorithm->knobs[named];
}

const char *convolution_form(Arena *arena, const ConvCandidate *candidate) {
  const ConvAlgorithm *algorithm = candidate->algorithm;
  Text text = text_new(arena);
  text_add(&text, "%s", algorithm->name);
  for (int i = 0; algorithm->knobs[i]; i++) text_add(&text, ",%s=%d", algorithm->knobs[i], candidate->knobs.value[i]);
  return text.data;
}
