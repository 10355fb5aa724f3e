/* SPDX-License-Identifier: MIT */
/*
 * A cell's formula as text, `(1-z)*n + z*h`, matched against strips. Sums and products match with their operands in
 * either order; `1` is a constant of ones; a letter is one strip, the same everywhere:
 *     i f o z r   result of a Sigmoid      g n y   result of a Tanh      others   anything
 */
#ifndef RNNCC_PATTERN_H
#define RNNCC_PATTERN_H

#include "reroll/strip.h"

typedef struct Bindings {
  Strip letters[26]; /* at their origin; `value` NULL: not bound */
} Bindings;

/* The letter's strip. */
Strip bound(const Bindings *bindings, char letter);

/* On success adds to the bindings, and to the trail the nodes of the formula. Otherwise leaves both as they were. */
bool pattern_match(Graph *graph, Trail *trail, const char *pattern, Strip strip, Bindings *bindings);

#endif
