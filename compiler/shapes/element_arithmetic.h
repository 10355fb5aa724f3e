/* SPDX-License-Identifier: MIT */
/* The element-wise ops and reductions of shape arithmetic. */
#ifndef RNNCC_ELEMENT_ARITHMETIC_H
#define RNNCC_ELEMENT_ARITHMETIC_H

#include "ir/op.h"
#include "shapes/elements.h"

enum { FLOAT_BITS = 24 }; /* of an f32's mantissa; f64 is held to the same */

/* False if the result is not known. `b` is NULL for ops of one operand; `result` may be an operand. */
typedef bool ElementOperation(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result);

ElementOperation *element_operation(OpKind op); /* element by element; NULL: none */
ElementOperation *element_reduction(OpKind op); /* of all elements; NULL: none */

/* Does the value's type hold this number exactly, or exactly enough for Floor, Ceil or Cast? */
bool ratio_is_held(const Value *value, const Ratio *ratio);

#endif
