/* SPDX-License-Identifier: MIT */
/* --precision: which nodes compute in which precision, where the model does not say so itself. */
#ifndef RNNCC_PRECISION_H
#define RNNCC_PRECISION_H

#include "support/arena.h"

typedef enum Precision {
#define PRECISION(name, word) PRECISION_##name,
#include "ir/precision.def"
} Precision;

const char *precision_word(Precision precision); /* "int8-dynamic" */

typedef struct PrecisionRule {
  const char *pattern; /* of nodes' names, with * and ?; NULL: all nodes */
  Precision precision;
} PrecisionRule;

typedef struct PrecisionRules {
  int count;
  PrecisionRule *list; /* of two that match, the later one holds */
} PrecisionRules;

/* Reads `PRECISION,PATTERN=PRECISION,...`. Returns what was expected; NULL: it is right. */
const char *precision_parse(Arena *arena, const char *text, PrecisionRules *rules);

/* The last rule for a node of that name; NULL: none. */
const PrecisionRule *precision_rule_of(const PrecisionRules *rules, const char *name);

#endif
