/* SPDX-License-Identifier: MIT */
/*
 * What of a graph, and of bodies in it, can be in int8. A layer is a node that multiplies constant weights
 * (convolutions, matrix products, recurrent layers), or one that joins or pools the results of such nodes. An
 * activation is a tensor that a layer reads in eight bits. Nodes that only move or compare elements (Reshape, MaxPool)
 * have one scale for what they read and write.
 */
#ifndef RNNCC_QUANTISE_LAYERS_H
#define RNNCC_QUANTISE_LAYERS_H

#include "ir/graph.h"

enum { HISTOGRAM_BINS = 2048 };

/* What the runs saw of an activation. */
typedef struct Seen {
  double least, most;
  int64_t count, not_finite;
  double *means; /* of its channels: n_channels */
  int64_t *bins; /* HISTOGRAM_BINS, equal parts of the range */
} Seen;

typedef struct LayerData {
  Value *value;
  int root; /* the activation whose range it has; its own place: itself */
  int channel_axis;
  int64_t n_channels;
  Seen seen;
  double least, most; /* the range that eight bits hold; set by choose_ranges() */
  float scale;
  uint8_t zero;
  bool usable; /* false: it has values that are not finite */
} LayerData;

/* Weights of one operand in eight bits, for each output channel symmetric around 0. */
typedef struct Rounded {
  const int8_t *data;
  const float *scales; /* one for each row of the axis, or of block_rows */
  int64_t n_scales;
} Rounded;

enum { MAX_WEIGHTS = 2 };

/* How a kind of operator becomes int8: a row of layer_kinds. */
typedef struct LayerKind {
  int op;                   /* OpKind */
  int n_weights;            /* 0: it joins or pools */
  int weights[MAX_WEIGHTS]; /* inputs */
  int bias;                 /* input; -1: none that is adjusted */
  bool data_in_8_bits;      /* else its products are in f32 */
  bool all_inputs;          /* of a joining node: all are data; else the first */
} LayerKind;

/* What a recurrent layer by fixed ranges multiplies: X, the states that it makes, those that it begins with. */
enum { RANGE_INPUT, RANGE_STATES, RANGE_INITIAL, N_RANGES };

typedef struct Layer {
  Node *node;
  Graph *graph; /* the body that it is in: there weights alone are in eight bits; or the network */
  const LayerKind *kind;
  int channel_axis; /* of the weights */
  int n_data;
  int *sources;                 /* the layers that these inputs come from; -1: none */
  int *data;                    /* activation that each of the first n_data inputs is; -1: it is constant */
  int ranges[N_RANGES];         /* of such a layer: activations; -1: none */
  bool made_y;                  /* the node had no output Y, which is watched */
  double *moments[MAX_WEIGHTS]; /* of what each operand of weights multiplies, ir/feedback.h, shared; NULL: not seen */
  const double *feedback[MAX_WEIGHTS]; /* what follows from them; NULL: integers are the nearest ones */
  bool int8;                           /* chosen */
  double alone;                        /* error of the outputs with this layer alone in int8; negative: not measured */
  const char *why_not;                 /* NULL: it can be in int8 */
} Layer;

typedef struct Layers {
  Graph *graph;
  int n, capacity;
  Layer *list;
  int n_activations, activation_capacity;
  LayerData *activations;
  int *activation_of; /* by value id; -1: none */
  int *layer_of; /* by value id: the layer that computes it, activation functions and moves behind it left out; -1 */
} Layers;

/* With data: activations too. Without: weights alone. fixed_ranges: recurrent layers have ranges. needs: infer_shapes,
 * dense ids. */
Layers layers_find(Graph *graph, bool with_data, bool fixed_ranges);

/* The activation that the table tells of the layer: what it reads. NULL: it reads only floats. */
const LayerData *layer_input(const Layers *layers, const Layer *layer);

bool is_recurrent_layer(const Layer *layer);

/* Gives a recurrent layer that has none the output Y, where the states of all steps are seen. */
void layer_make_y(Graph *graph, Layer *layer);

/* The axis of a node's data that the weights' input channels stand along; -1: they are rows of a Gemm. */
int channels_in_data(const Node *node);

/* Does the node only move or compare elements of its first input? */
bool moves_elements(const Node *node);

#endif
