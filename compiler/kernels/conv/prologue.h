/* SPDX-License-Identifier: MIT */
/*
 * The prologue of a convolution (Node.prologue): batch normalisation, as a scale and a shift of each channel, and its
 * activation, which the kernel computes of x as it copies it.
 */
#ifndef RNNCC_CONV_PROLOGUE_H
#define RNNCC_CONV_PROLOGUE_H

#include "kernels/conv/convolution.h"

/* Under which convolutions kernels take one: of one group and a plane that is known, in whole vectors of channels, with
 * a 1x1 window. */
bool prologue_fits(const Graph *graph, const Convolution *conv);

/* The constants, scale and shift, behind node->packed's weights and bias; none without a prologue. */
void pack_prologue(Graph *graph, Node *node, int64_t block);

/* PROLOGUE, and the hook of that name; the operands `scale` and `shift`. */
void knobs_prologue(KernelSpec *spec, const Graph *graph, const Node *node);
void operands_prologue(Call *call, const Node *node);

#endif
