/* SPDX-License-Identifier: MIT */
#include "ir/precision.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "support/text.h"

static const char *const words[] = {
#define PRECISION(name, word) word,
#include "ir/precision.def"
};
enum { N_WORDS = sizeof words / sizeof *words };

const char *precision_word(Precision precision) { return words[precision]; }

static const char *all_words(Arena *arena) {
  Text text = text_new(arena);
  for (int i = 0; i < N_WORDS; i++) text_add(&text, "%s%s", i ? ", " : "", words[i]);
  return text.data;
}

/* "PRECISION" or "PATTERN=PRECISION"; of a pattern that has one, the last `=` counts. */
static bool read_rule(char *item, PrecisionRule *rule) {
  char *equals = strrchr(item, '=');
  const char *word = equals ? equals + 1 : item;
  rule->pattern = equals ? item : NULL;
  if (equals == item) return false;
  for (int i = 0; i < N_WORDS; i++) {
    if (strcmp(word, words[i]) != 0) continue;
    if (equals) *equals = 0;
    rule->precision = (Precision)i;
    return true;
  }
  return false;
}

const char *precision_parse(Arena *arena, const char *text, PrecisionRules *rules) {
  rules->count = 0;
  rules->list = ARENA_ARRAY(arena, PrecisionRule, strlen(text) + 1);
  for (const char *at = text;; at++) {
    size_t length = strcspn(at, ",");
    char *item = arena_format(arena, "%.*s", (int)length, at);
    if (!read_rule(item, &rules->list[rules->count++]))
      return arena_format(arena, "PRECISION or PATTERN=PRECISION, with commas between, PRECISION one of %s",
                          all_words(arena));
    at += length;
    if (!*at) return NULL;
  }
}

const PrecisionRule *precision_rule_of(const PrecisionRules *rules, const char *name) {
  for (int i = rules->count - 1; i >= 0; i--) {
    const PrecisionRule *rule = &rules->list[i];
    if (!rule->pattern || fnmatch(rule->pattern, name, 0) == 0) return rule;
  }
  return NULL;
}
