/* SPDX-License-Identifier: MIT */
/* A recurrent node as its kernels see it: the cell, its extents, and the matrices it reads. */
#ifndef RNNCC_LAYER_H
#define RNNCC_LAYER_H

#include "ir/family.h"
#include "ir/narrow.h"
#include "kernels/gemm/gemm.h"
#include "kernels/recurrent/cell.h"
#include "kernels/recurrent/stack.h"
#include "kernels/recurrent/variant.h"

/* The matrices of a layer, packed at compile time if constant, else at run time. */
typedef enum Matrix {
  MATRIX_INPUT,      /* W */
  MATRIX_BIAS,       /* Wb + Rb; without the Rb of AFTER_BIAS */
  MATRIX_HIDDEN,     /* R, of GRU_BEFORE the first two gates */
  MATRIX_CANDIDATE,  /* R of GRU_BEFORE's last gate */
  MATRIX_AFTER_BIAS, /* Rb of GRU_AFTER's last gate */
  MATRIX_PEEPHOLES,  /* P */
  MATRICES
} Matrix;

typedef struct MatrixPlan {
  const Value *source;   /* NULL: none */
  int64_t first, addend; /* offsets in source, in elements; addend < 0: none */
  Panels panels;
  Value *packed;          /* a constant, or what the run packs, from `lower` on */
  Value *scales, *totals; /* of the columns of products of integers (int8.h) */
} MatrixPlan;

typedef struct Layer {
  Schedule base;
  Cell cell;
  BlockRows rows;
  int gates, unit_vectors, panel_parts, parts;
  RecurrentVariant variant;                   /* base.knobs by name */
  bool int8;                                  /* products of integers: int8.h */
  bool input_in_matrices, hidden_in_matrices; /* products with W and with R: bf16.h */
  int row_parts;                              /* of that with R: numbers of bf16 that one of a state becomes */
  bool fixed_ranges; /* of X and the states, whose elements are quantised by them, not by those of each row */
  double input_range[2], hidden_range[2];
  int input_form, hidden_form; /* int8: of the products with W and with R, Int8Form */
  bool cells_first;            /* of a block's samples, cells or gates come before all hidden states */
  bool halves;                 /* two workers share the middle one of an odd number of panels */
  int64_t directions, hidden, inputs, panels;
  bool reverse, batch_first, input_forget;
  float clip;        /* 0: none */
  int n_activations; /* of a direction */
  Activation activations[2 * MAX_ACTIVATIONS];
  const Dim *steps, *batch;
  const Value *lengths;
  const Stack *stack; /* the stack that runs as a wavefront, and the layer's index in it; NULL: none */
  int place;
  int products; /* with W: one, or in chunks one of each direction, because a chunk's times differ */
  GemmKnobs gemm;
  int64_t gates_row; /* floats of one step of one sample in the gates' buffer */
  MatrixPlan matrices[MATRICES];
  /* Offsets of the steps' memory and of partial sums, and the total; gates are at 0. */
  int64_t memory, partial, scratch_bytes;
  int64_t partial_bytes;
  /* int8: offsets of the rows of X and of the states as they are quantised, and of these rows' scales; sets of states
   */
  int64_t x_bytes, x_scales, state_bytes, state_scales, slots;
  int64_t x_rounded, state_rounded; /* in matrices: offsets of X and of the states in bf16 */
} Layer;

/* How the kernels keep the weights of W or R; NULL: in f32. Of products of integers they do not ask. */
static inline const NarrowWeights *layer_narrow(const Layer *layer, Matrix matrix) {
  const MatrixPlan *plan = &layer->matrices[matrix];
  return plan->source ? narrow_columns(plan->source, plan->panels.depth, 1) : NULL;
}

enum { ALL_WORKERS = 1024 }; /* upper bound of workers */

/* Vectors of units in a panel of R, by at most so many workers. */
int layer_unit_vectors(const Node *node, const Target *target, const Dim *steps, const Dim *batch, int workers);

/* The layer with the schedule of plan_recurrent and --rnn. NULL after error_at(), if the kernels cannot run it. */
Layer *layer_of(Graph *graph, Node *node);
/* The layer with another variant. */
Layer *layer_run_by(Graph *graph, Node *node, const RecurrentVariant *variant);

#endif
