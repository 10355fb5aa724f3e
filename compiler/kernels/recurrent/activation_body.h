/* SPDX-License-Identifier: MIT */
/* Activations of recurrent ops as bodies of the kernel's hooks. */
#ifndef RNNCC_ACTIVATION_BODY_H
#define RNNCC_ACTIVATION_BODY_H

#include "ir/graph.h"

enum { MAX_ACTIVATIONS = 3 }; /* of one direction: f, g, h */

typedef struct ActivationBodies {
  const char *body[2][MAX_ACTIVATIONS]; /* by direction: "return vtanh(x);" */
} ActivationBodies;

/* The node's activations; `defaults` names one direction's, `per_direction` of them. error_at() and false for names or
 * counts that ONNX does not have. */
bool read_activation_bodies(Graph *graph, const Node *node, int directions, int per_direction,
                            const char *const *defaults, ActivationBodies *bodies);

#endif
