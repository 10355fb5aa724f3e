/* SPDX-License-Identifier: MIT */
/* Operands of calls that layers of f32 and of integers have in common. */
#ifndef RNNCC_RECURRENT_LOWERING_H
#define RNNCC_RECURRENT_LOWERING_H

#include "kernels/recurrent/layer.h"
#include "program/build.h"

/* The packed matrix; NULL if there is none. */
void give_matrix(Program *program, Call *call, const char *parameter, const MatrixPlan *matrix);

/* Of the steps of a direction: the gates' biases and peepholes, states, outputs, extents. Those of several directions
 * may run side by side. */
void give_direction(Program *program, Call *call, const Node *node, const Layer *layer, int direction);

#endif
