/* SPDX-License-Identifier: MIT */
/* The activation functions that recurrent ops name, with their alpha and beta. */
#ifndef RNNCC_REFERENCE_ACTIVATION_H
#define RNNCC_REFERENCE_ACTIVATION_H

#include "ir/graph.h"

typedef struct Activation {
  double (*apply)(double x, double alpha, double beta);
  double alpha, beta;
} Activation;

/* The node's activations, `per_direction` for each direction, forward first; `defaults` for one direction where the
 * node names none. Returns NULL, or what is wrong with the attributes. */
const char *read_activations(const Node *node, int directions, int per_direction, const char *const *defaults,
                             Activation *activations);

#endif
