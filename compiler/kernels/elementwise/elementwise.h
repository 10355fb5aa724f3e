/* SPDX-License-Identifier: MIT */
/* Element-wise ops as C expressions: for the element-wise family, and for epilogues. */
#ifndef RNNCC_ELEMENTWISE_H
#define RNNCC_ELEMENTWISE_H

#include "ir/graph.h"

/* Has the node an expression of vectors, f32 to f32? */
bool elementwise_on_vectors(const Node *node);

/* Is it an f32 op of its first input, with constant scalars or absent inputs as the others? */
bool elementwise_is_epilogue(const Node *node);

/* The chain node->epilogue on the vector `x`, as the body of a hook `vec epilogue(vec x)`: "return vtanh(x);". Every
 * node of it must be elementwise_is_epilogue. */
const char *elementwise_epilogue_body(Arena *arena, const Node *node);

/* KernelFamily.takes_epilogue of kernels that take any such op. */
bool elementwise_follows(const Node *host, const Node *step);

/* Is the epilogue's first step no such op, but a sum that the kernel takes as an operand? */
bool epilogue_begins_with_sum(const Node *node);
/* What that sum adds; NULL: there is none. */
const Value *epilogue_addend(const Node *node);
/* elementwise_epilogue_body() of the steps after that sum; NULL: there are none. */
const char *elementwise_epilogue(Arena *arena, const Node *node);

/* The op on vectors, with the C expressions of its (up to three) inputs in order, NULL where one is absent. NULL if the
 * op is not written in vectors. */
const char *elementwise_vector(Arena *arena, const Node *node, const char *const *inputs);

/* The same on single elements, for ops of other types. */
const char *elementwise_scalar(Arena *arena, const Node *node, const char *const *inputs);

/* Has the node an expression of vectors and masks: of f32, bool, u8 and i8? */
bool elementwise_chains(const Node *node);
/* Is an input or the output u8 or i8? */
bool elementwise_of_bytes(const Node *node);
/* Then its expression, as elementwise_vector: a vmask where the output is bool, else a vec. */
const char *elementwise_chained(Arena *arena, const Node *node, const char *const *inputs);

/* Is the value a number that elementwise_literal() writes into the kernel's text, as a vec? */
bool elementwise_is_literal(const Value *value);
const char *elementwise_literal(Arena *arena, const Value *value);

#endif
