/* SPDX-License-Identifier: MIT */
/* Cast from and to types that C lacks: how they become numbers, and numbers become them (runtime/small_float.h). */
#ifndef RNNCC_CAST_TEXT_H
#define RNNCC_CAST_TEXT_H

#include "ir/graph.h"

/* The number that an element of the type is: an f32 or an integer. `element` itself if it is a number in C. */
const char *cast_decoded(Arena *arena, DType dtype, const char *element);

/* The element that the number becomes, of the type of the Cast's output. `number` is of the type of its input, or f32
 * where that is coded; it is returned as it is if the output is a number in C. */
const char *cast_encoded(Arena *arena, const Node *node, const char *number);

/* The type that the number has between: f32 for what is coded, i32 for integers of less than 8 bits. */
DType cast_between(DType dtype);

#endif
