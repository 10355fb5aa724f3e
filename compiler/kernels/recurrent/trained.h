/* SPDX-License-Identifier: MIT */
/*
 * A recurrent node that is trained, forward (RNNTraining, ...) or backward (RNNGradient, ...), as its kernels see it.
 * Its weights change from run to run, so each run packs them.
 */
#ifndef RNNCC_TRAINED_H
#define RNNCC_TRAINED_H

#include "ir/family.h"
#include "kernels/gemm/gemm.h"
#include "kernels/recurrent/cell.h"
#include "kernels/recurrent/partition.h"
#include "program/build.h"

typedef struct Trained {
  Cell cell;
  int gates, saved; /* numbers of a unit in S, or of RNN in Y */
  int64_t directions, inputs, hidden;
  bool reverse, batch_first, input_forget, peepholes;
  int n_activations; /* of a direction */
  Activation activations[2 * MAX_ACTIVATIONS];
  const Dim *steps, *batch, *rows; /* T, B, T*B */
  int64_t most_rows, most_batch;
  const Value *lengths;
} Trained;

/* Of the time-dependent product: how panels are cut, and who owns which. */
typedef struct TrainedSteps {
  int unit_vectors, part_vectors, parts; /* of units in a panel; of a part of a product; such parts */
  BlockRows rows;
  int64_t panels, depth_block;
  int workers;
  Split split;
} TrainedSteps;

/* Do Y's rows stand as X's do, a sample at a time each, with all directions side by side? */
static inline bool rows_are_like_x(const Trained *trained) { return trained->directions == 1 || trained->batch_first; }

/* False after error_at(). */
bool read_trained(Graph *graph, const Node *node, Trained *trained);

/* Vectors of units in a panel of all gates that are multiplied at once: where three of one vector leave registers for
 * few rows, two. */
int trained_unit_vectors(const Graph *graph, const Trained *trained);

/* Steps of the depth of a product with a panel of so many vectors that all blocks of rows use before the next ones. */
int64_t panel_depth_block(const Graph *graph, int vectors, int64_t depth);

/* unit_vectors of `gates` gates each, that are multiplied at once to `depth`. */
TrainedSteps plan_steps(const Graph *graph, const Trained *trained, int unit_vectors, int gates, int64_t depth);

/* "_p2" or "_p2_s2": for a schedule's text. */
const char *workers_text(Arena *arena, const TrainedSteps *steps);

/* A template that includes parts/trained_layer.h, and those of its knobs that all of them read. */
KernelSpec *trained_spec(Program *program, const char *template_name, const Trained *trained);
void steps_knobs(KernelSpec *spec, const TrainedSteps *steps);
/* The extents, which all of them have as parameters, and the lengths. */
void give_extents(Call *call, const Node *node, const Trained *trained);

/* Scratch memory as it is handed out: where a part of so many floats begins, in bytes. */
typedef struct Scratch {
  int64_t bytes;
} Scratch;
int64_t scratch_floats(Scratch *scratch, int64_t floats);

/* A product of `rows` rows with panels: C = A B, or C += A B if it adds. Operands a, b and c are given by the caller.
 */
typedef struct TrainedProduct {
  GemmKnobs knobs;
  const Dim *m, *k;
  int64_t n, a_row, c_row;
} TrainedProduct;
Call *lower_product(Program *program, const Node *node, const TrainedProduct *product, bool adds);

#endif
