/* SPDX-License-Identifier: MIT */
/*
 * A row-major input as windows read it in whole vectors: the tensor itself where it is dense and needs no padding, else
 * a copy by templates/conv_pad.c, with zeros around and sorted by its position modulo the strides.
 */
#ifndef RNNCC_PADDED_INPUT_H
#define RNNCC_PADDED_INPUT_H

#include "kernels/conv/convolution.h"

typedef struct PaddedInput {
  ConvAxis d, h, w;                   /* a volume under a window of one point without padding or stride is one row */
  bool dense;                         /* the tensor itself */
  const Dim *planes, *rows, *columns; /* of the copy: planes; rows and columns of a phase of a plane */
} PaddedInput;

/* Without the copy's extents. */
PaddedInput padded_input_of(Graph *graph, const Convolution *conv);
/* Sets them. covered: outputs of a row whose windows' columns are there. */
void padded_input_size(Graph *graph, PaddedInput *in, const Dim *covered);

/* Phases of a plane's rows, or of a row's columns, that windows read. */
int64_t padded_input_phases(const ConvAxis *axis);
/* Of the whole copy. */
const Dim *padded_input_floats(Graph *graph, const PaddedInput *in, const Value *x);

/* The kernel that makes the copy, in the first `bytes` bytes of `to` (NULL: all); NULL, and no call, if there is none.
 */
KernelSpec *padded_input_spec(const Graph *graph, const PaddedInput *in);
void lower_padded_input(Program *program, const Node *node, const PaddedInput *in, const Value *x, const Value *to,
                        const Dim *bytes);
/* The operands of a kernel that reads it: x, x_channel, x_plane, x_row, x_phase_h, x_phase_w. */
void operands_padded_input(Program *program, Call *call, const PaddedInput *in, const Value *x, const Value *copy,
                           const Dim *bytes);

#endif
