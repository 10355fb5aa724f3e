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

DType precision_weights(Precision precision) {
  static const DType types[N_WORDS] = {[PRECISION_bf16] = RNNCC_BF16,
                                       [PRECISION_bf16_dynamic] = RNNCC_BF16,
                                       [PRECISION_f16] = RNNCC_F16,
                                       [PRECISION_int8] = RNNCC_I8,
                                       [PRECISION_int4] = RNNCC_I4};
  return types[precision];
}

static const char *all_words(Arena *arena) {
  Text text = text_new(arena);
  for (int i = 0; i < N_WORDS; i++) text_add(&text, "%s%s", i ? ", " : "", words[i]);
  return text.data;
}

bool precision_group_fits(int64_t group) {
  return LEAST_GROUP <= group && group <= LARGEST_GROUP && (group & (group - 1)) == 0;
}

/* Takes ":64" off a word. False: that is no group. */
static bool take_group(char *word, PrecisionRule *rule) {
  char *colon = strchr(word, ':');
  rule->group = 0;
  if (!colon) return true;
  *colon = 0;
  for (const char *at = colon + 1; *at; at++) {
    if (*at < '0' || *at > '9' || rule->group > LARGEST_GROUP) return false;
    rule->group = 10 * rule->group + *at - '0';
  }
  return precision_group_fits(rule->group);
}

/* "PRECISION" or "PATTERN=PRECISION"; of a pattern that has one, the last `=` counts. */
static bool read_rule(char *item, PrecisionRule *rule) {
  char *equals = strrchr(item, '=');
  char *word = equals ? equals + 1 : item;
  rule->pattern = equals ? item : NULL;
  if (equals == item || !take_group(word, rule)) return false;
  for (int i = 0; i < N_WORDS; i++) {
    if (strcmp(word, words[i]) != 0) continue;
    if (equals) *equals = 0;
    rule->precision = (Precision)i;
    if (i == PRECISION_int4 && !rule->group) rule->group = INT4_GROUP;
    return !rule->group || i == PRECISION_int4 || i == PRECISION_int8;
  }
  return false;
}

const char *precision_parse(Arena *arena, const char *text, PrecisionRules *rules) {
  rules->text = text;
  rules->count = 0;
  rules->list = ARENA_ARRAY(arena, PrecisionRule, strlen(text) + 1);
  for (const char *at = text;; at++) {
    size_t length = strcspn(at, ",");
    char *item = arena_format(arena, "%.*s", (int)length, at);
    if (!read_rule(item, &rules->list[rules->count++]))
      return arena_format(
          arena,
          "PRECISION or PATTERN=PRECISION, with commas between, PRECISION one of %s, and behind int8 or "
          "int4 perhaps :GROUP, a power of two from %d to %d",
          all_words(arena), LEAST_GROUP, LARGEST_GROUP);
    at += length;
    if (!*at) return NULL;
  }
}

const PrecisionRule *precision_rule_of(Arena *arena, const PrecisionRules *rules, const char *name,
                                       const char *operand) {
  const char *weights = operand ? arena_format(arena, "%s.%s", name, operand) : NULL;
  for (int i = rules->count - 1; i >= 0; i--) {
    const PrecisionRule *rule = &rules->list[i];
    if (!rule->pattern || fnmatch(rule->pattern, name, 0) == 0) return rule;
    if (weights && fnmatch(rule->pattern, weights, 0) == 0) return rule;
  }
  return NULL;
}
