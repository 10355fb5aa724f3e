/* SPDX-License-Identifier: MIT */
/*
 * The matrix products of a graph's recurrent part as one DAG (DeepCPU, section 4: MM-DAG). A node is one product of one
 * time step, the same for every step: a gate's product with the input (W x) or with the hidden state (R h), of one
 * direction of one layer; or a MatMul or Gemm that feeds a recurrent op or reads from one. An edge is a dependency,
 * through any element-wise nodes: on the same step, the step before, or all steps. Nodes that are not matrix products
 * are left out: they are two or three orders of magnitude less work.
 *
 * Only products with a hidden state depend on time. The graph has no cycles, so any other product can be computed for
 * all steps at once.
 */
#ifndef RNNCC_MM_DAG_H
#define RNNCC_MM_DAG_H

#include "kernels/recurrent/layer.h"

typedef enum MmOperand { MM_INPUT, MM_HIDDEN, MM_AROUND } MmOperand;

typedef enum MmWhen { MM_SAME_STEP, MM_STEP_BEFORE, MM_ALL_STEPS } MmWhen;

typedef struct MmNeed {
  int from; /* index in MmDag.mms */
  MmWhen when;
} MmNeed;

/* The order of steps in time. A reverse layer needs all steps of a forward one. */
typedef enum MmWay { MM_FORWARD, MM_REVERSE, MM_ANY_WAY, MM_BOTH_WAYS } MmWay;

typedef struct Mm {
  const Node *node;
  MmOperand operand;
  int layer;           /* index in MmDag.layers; -1: MM_AROUND */
  int direction, gate; /* gate in ONNX's order; of MM_AROUND both 0 */
  MmWay way;
  int64_t columns, depth; /* N, K at the dims' optimum; M is the batch */
  int n_needs;
  MmNeed *needs;
} Mm;

typedef struct MmLayer {
  Node *node;
  Cell cell;
  int gates, directions;
  bool reverse, batch_first;
  bool stacked;           /* a layer of one of graph->stacks */
  int64_t inputs, hidden; /* I, H */
  const Dim *steps, *batch;
  int first; /* of its products in MmDag.mms: [direction][operand: input, hidden][gate] */
} MmLayer;

typedef struct MmDag {
  int n_layers, n_mms;
  MmLayer *layers; /* in the graph's order */
  Mm *mms;
} MmDag;

/* needs: infer_shapes. Does not change the graph. */
MmDag *mm_dag(Graph *graph);

int mm_index(const MmLayer *layer, int direction, MmOperand operand, int gate);

#endif
