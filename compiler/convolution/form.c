/* SPDX-License-Identifier: MIT */
#include "convolution/form.h"

#include <stdlib.h>
#include <string.h>

static const char *const algorithms[] = {
#define ALGORITHM(name) #name,
#include "convolution/algorithms.def"
#undef ALGORITHM
};
/* Of all algorithms. */
static const char *const knobs[] = {"oc", "px", "unroll", "pass", "groups", "tiles"};

static bool starts_with(const char *text, const char *word, size_t length) {
  return strlen(word) == length && !strncmp(text, word, length);
}

static bool is_one_of(const char *text, size_t length, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (starts_with(text, words[i], length)) return true;
  return false;
}

static bool is_knob(const char *part, size_t length) {
  size_t name = strcspn(part, "="), digits = name < length ? strspn(part + name + 1, "0123456789") : 0;
  return digits > 0 && digits < 8 && name + 1 + digits == length &&
         is_one_of(part, name, knobs, sizeof knobs / sizeof *knobs);
}

const char *form_wrong(const char *form) {
  size_t length = strcspn(form, ",");
  if (!is_one_of(form, length, algorithms, sizeof algorithms / sizeof *algorithms)) return form;
  for (const char *part = form + length; *part; part += length) {
    length = strcspn(++part, ",");
    if (!is_knob(part, length)) return part;
  }
  return NULL;
}

bool form_is_of(const char *form, const char *algorithm) {
  return form && starts_with(form, algorithm, strcspn(form, ","));
}

int64_t form_knob(const char *form, const char *knob, int64_t otherwise) {
  for (const char *part = form ? strchr(form, ',') : NULL; part; part = strchr(part, ',')) {
    part++;
    if (starts_with(part, knob, strcspn(part, "="))) return strtoll(part + strlen(knob) + 1, NULL, 10);
  }
  return otherwise;
}
