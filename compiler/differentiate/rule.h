/* SPDX-License-Identifier: MIT */
/*
 * How one operator hands a gradient back: from that of its results to that of what it read. Rules are formulas
 * (expand/formula.h) of existing operators; gradients.def says which operator has which.
 *
 * In rules x, a, b are inputs, y the result, d... the gradient of the loss for it.
 */
#ifndef RNNCC_RULE_H
#define RNNCC_RULE_H

#include "expand/formula.h"

/* One node, differentiated. */
typedef struct Gradient {
  const Formula *f; /* new nodes have the node's name */
  Node *node;
  Value *const *dy;   /* by output; NULL: the loss does not depend on it. At least one is there */
  const bool *wanted; /* by input */
  Value **dx;         /* by input: what the rule sets for those that are wanted; NULL: 0 */
} Gradient;

/* Returns NULL, or what of the node has no gradient: "`mode` other than constant". */
typedef const char *GradientRule(const Gradient *g);

#define GRADIENT(op, inputs, rule) GradientRule rule;
#include "differentiate/gradients.def"

/* ---- what rules share ---- */

/* A rule whose node has one output. */
static inline Value *gradient_in(const Gradient *g) { return g->dy[0]; }

/* The node's outputs, its first `n`: those that it lacked are new. */
Value **all_outputs(const Gradient *g, int n);

/* A list of extents, for operators whose shapes depend on it. */
Value *extents(const Formula *f, int n, const Dim *const *list);
/* In that shape; any extents may be known at run time only. */
Value *in_shape(const Formula *f, Value *d, int rank, const Dim *const *shape);

/* Sums away what broadcasting `like` added, so that the result has its shape. */
Value *sum_to(const Formula *f, Value *d, Value *like);
/* In the shape of `like`, which has the same elements. */
Value *shaped_as(const Formula *f, Value *d, Value *like);
/* Broadcast to a shape; to that of `like`. */
Value *spread_to_shape(const Formula *f, Value *d, int rank, const Dim *const *shape);
Value *spread_to(const Formula *f, Value *d, Value *like);
/* Zeros in the shape of `like`, of its type. */
Value *zeros_like(const Formula *f, Value *like);
/* How many elements of x there are for each of y, as a number of their type. */
Value *elements_for_each(const Formula *f, Value *x, Value *y);
/* alpha op(A) op(B), where op turns a matrix over. */
Value *matrix_product(const Formula *f, Value *a, bool turn_a, Value *b, bool turn_b, double alpha);
/* [..., K] as [all, K]. */
Value *as_matrix(const Formula *f, Value *x);
/* d where the condition holds, else 0. */
Value *where_true(const Formula *f, Value *condition, Value *d);

#endif
