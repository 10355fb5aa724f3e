/* SPDX-License-Identifier: MIT */
/*
 * What weights multiply, seen on samples: second moments, from which follows which integers make up for the errors of
 * others (ir/feedback.h; Frantar et al. 2023, GPTQ). Of W of a recurrent layer that is X; of R the states that the
 * layer makes and those that it begins with; of a product its first input. Layers in bodies of Loop and Scan, and so of
 * a BeamSearch, are seen, too: what they read becomes an output of the loop, a row an iteration.
 */
#ifndef RNNCC_QUANTISE_MOMENTS_H
#define RNNCC_QUANTISE_MOMENTS_H

#include "quantise/layers.h"
#include "rnncc.h"

/* An output of the watched network, behind its activations. */
typedef struct Rows {
  double *moments; /* the layer's */
  int64_t depth;
} Rows;

typedef struct AllRows {
  int n, capacity;
  Rows *list;
} AllRows;

/* Shared memory for the layers' moments. */
void moments_prepare(Layers *layers);

/* Appends outputs. Changes the graph, whose searches become loops, and the layers. */
AllRows moments_watch(Layers *layers);

/* Adds what a run has shown; so much of it that all `n_runs` give some thousands of rows. */
void moments_add(const Rows *rows, const rnncc_tensor *seen, int n_runs);

/* Sets the layers' feedback. */
void moments_finish(Layers *layers);

#endif
