/* SPDX-License-Identifier: MIT */
/* Transposed convolution of blocked tensors, in templates/conv_transposed_blocked.c. */
#ifndef RNNCC_TRANSPOSED_H
#define RNNCC_TRANSPOSED_H

#include "kernels/conv/convolution.h"

/* The node as a Convolution with weights [groups * channels][kernels][R][S], whose pads crop the output. */
Convolution transposed_of(Graph *graph, const Node *node);

/* For nodes whose tensors can_be_blocked(). */
bool transposed_runs_blocked(Graph *graph, const Node *node);
void transposed_schedule_blocked(Graph *graph, Node *node);
void transposed_pack_blocked(Graph *graph, Node *node);
void transposed_lower_blocked(Program *program, Node *node);

/* Multiply-adds at the dims' optimum: the whole window for every input. */
double transposed_macs(const Convolution *conv);

#endif
