/* SPDX-License-Identifier: MIT */
/* --precision: which nodes compute in which precision, where the model does not say so itself. */
#ifndef RNNCC_PRECISION_H
#define RNNCC_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/dtype.h"
#include "support/arena.h"

typedef enum Precision {
#define PRECISION(name, word) PRECISION_##name,
#include "ir/precision.def"
} Precision;

enum { LEAST_GROUP = 8, LARGEST_GROUP = 1024, INT4_GROUP = 32 }; /* of weights; powers of two */

const char *precision_word(Precision precision); /* "int8-dynamic" */

/* The type of the weights, where only these are of another one; else RNNCC_NONE. */
DType precision_weights(Precision precision);

typedef struct PrecisionRule {
  const char *pattern; /* of nodes' names, with * and ?; NULL: all nodes */
  Precision precision;
  int group; /* int8, int4: numbers that share a scale; 0: all of an output channel */
} PrecisionRule;

typedef struct PrecisionRules {
  const char *text; /* as given; NULL: not at all */
  int count;
  PrecisionRule *list; /* of two that match, the later one holds */
} PrecisionRules;

/* Reads `PRECISION,PATTERN=PRECISION,...`, where PRECISION may be int8:GROUP or int4:GROUP. Returns what was expected;
 * NULL: it is right. */
const char *precision_parse(Arena *arena, const char *text, PrecisionRules *rules);

/* Can so many numbers of weights share a scale? */
bool precision_group_fits(int64_t group);

/* The last rule for a node of that name; NULL: none. operand: of one of its weights, which rules for NODE.OPERAND are
 * for, too; NULL: of none. */
const PrecisionRule *precision_rule_of(Arena *arena, const PrecisionRules *rules, const char *name,
                                       const char *operand);

#endif
