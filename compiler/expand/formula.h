/* SPDX-License-Identifier: MIT */
/*
 * New nodes that read like a formula: over(f, d, plus(f, root, epsilon)). They have the name of the node that they
 * replace, and inferred shapes. For other ops use apply(), or build_op() of shapes/build.h.
 */
#ifndef RNNCC_FORMULA_H
#define RNNCC_FORMULA_H

#include "shapes/build.h"

typedef Builder Formula;

/* Any op of one, two or three inputs without attributes. */
Value *apply(const Formula *f, OpKind op, Value *x);
Value *apply2(const Formula *f, OpKind op, Value *a, Value *b);
Value *apply3(const Formula *f, OpKind op, Value *a, Value *b, Value *c);

Value *plus(const Formula *f, Value *a, Value *b);
Value *minus(const Formula *f, Value *a, Value *b);
Value *times(const Formula *f, Value *a, Value *b);
Value *over(const Formula *f, Value *a, Value *b);

/* A scalar constant of `like`'s type. */
Value *number(const Formula *f, const Value *like, double value);
/* Constants; `data` is copied. */
Value *integers(const Formula *f, int n, const int64_t *data);
Value *floats(const Formula *f, int rank, const int64_t *shape, const float *data);

/* 0, 1, ... as long as the axis. */
Value *places_along(const Formula *f, Value *x, int64_t axis);

/* Indices that may not count from the end, as Gather's do: a negative one is read as what is none of any axis, which
 * the run refuses. */
Value *counted_from_start(const Formula *f, Value *indices);

/* `op` is ReduceSum, ReduceMean, ...; the axes stay, of extent 1. */
Value *reduced(const Formula *f, OpKind op, Value *x, int n, const int64_t *axes);
/* The sum along the axes, which are removed. */
Value *summed_away(const Formula *f, Value *x, int n, const int64_t *axes);
/* In this shape: each extent is constant, or that of x on the same axis; one may be another. Ends the compilation if
 * more are. */
Value *reshaped(const Formula *f, Value *x, int rank, const Dim *const *shape);
/* In the shape that a list of integers gives. Of a tensor without elements a 0 is the extent itself. */
Value *reshaped_to(const Formula *f, Value *x, Value *extents);
Value *cast(const Formula *f, Value *x, DType to);
Value *gathered(const Formula *f, Value *x, Value *indices, int64_t axis);
Value *with_axis(const Formula *f, Value *x, int64_t axis);    /* of extent 1, before `axis` */
Value *without_axis(const Formula *f, Value *x, int64_t axis); /* that one, of extent 1 */
/* With the last two axes swapped. */
Value *matrices_turned(const Formula *f, Value *x);
Value *softmax_along(const Formula *f, Value *x, int64_t axis);
/* Softmax before opset 13: over all axes from `axis` on. */
Value *flat_softmax(const Formula *f, Value *x, int64_t axis);

#endif
