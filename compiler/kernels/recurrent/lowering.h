/* SPDX-License-Identifier: MIT */
/* Calls, and operands of calls, that layers of f32, of integers, and those that are trained have in common. */
#ifndef RNNCC_RECURRENT_LOWERING_H
#define RNNCC_RECURRENT_LOWERING_H

#include "kernels/recurrent/layer.h"
#include "program/build.h"

/* Faults, in the run, of lengths [batch] outside 1 to `steps`. lengths NULL: no call. */
void lower_length_check(Program *program, const Node *node, const Value *lengths, const Dim *batch, const Dim *steps);

/* The packed matrix; NULL if there is none. */
void give_matrix(Program *program, Call *call, const char *parameter, const MatrixPlan *matrix);

/* Of the steps of a direction: the gates' biases and peepholes, states, outputs, extents. Those of several directions
 * may run side by side. */
void give_direction(Program *program, Call *call, const Node *node, const Layer *layer, int direction);

#endif
