/* SPDX-License-Identifier: MIT */
/*
 * What the model's names are called in a header. All constants of the input `x` begin with PREFIX_INPUT_x: its place is
 * that name alone, the others have one of the endings below. So that no two are the same, a name is
 *
 *     itself, where it is an identifier of C,
 *     else an underscore in place of each other byte: `x.1` is x_1,
 *     its index, where that begins with a digit, or is another's, with or without an ending.
 */
#ifndef RNNCC_HEADER_NAMES_H
#define RNNCC_HEADER_NAMES_H

#include "support/arena.h"

/* For each of `count` names of one kind. */
const char **header_names(Arena *arena, const char *const *names, int count);

#endif
