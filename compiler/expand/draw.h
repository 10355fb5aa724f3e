/* SPDX-License-Identifier: MIT */
/* A tensor of random numbers, as the kernel makes it: first + step * z, z uniform in [0, 1) or normal. */
#ifndef RNNCC_DRAW_H
#define RNNCC_DRAW_H

#include "expand/formula.h"

typedef enum DrawLaw { DRAW_uniform, DRAW_normal } DrawLaw;

/* Its inputs are two integers: which draw it is, and the key. `mode` is the law, `start` the first, `scale` the step.
 */
extern const OpInfo op_draw;

/* What a node draws, f32 or f64, in this shape. */
Value *drawn(const Formula *f, const Node *node, DrawLaw law, double first, double step, DType dtype, int rank,
             const Dim *const *shape);

#endif
