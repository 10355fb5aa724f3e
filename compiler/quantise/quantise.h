/* SPDX-License-Identifier: MIT */
/*
 * `rnncc quantize`: the network runs on samples, what its layers read is seen, and the model is written with its
 * weights in eight bits and with QuantizeLinear and DequantizeLinear around its layers. Without samples weights alone
 * are small.
 */
#ifndef RNNCC_QUANTISE_H
#define RNNCC_QUANTISE_H

#include "quantise/ranges.h"
#include "quantise/rewrite.h"
#include "quantise/samples.h"

typedef struct QuantiseOptions {
  int n_data;
  const DataOption *data; /* none: weights only */
  RangeRule ranges;
  double percentile; /* of RANGES_PERCENTILE */
  bool equalise;
  bool feedback; /* integers make up for each other's errors, as the samples show them */
  RewriteOptions rewrite;
  double max_error;   /* of the outputs: layers go back to f32 until it is met; negative: not asked for */
  int threads;        /* that modules run on; 0: all that the machine has */
  const char *plot;   /* an SVG of the layers' errors; NULL: none */
  const char *output; /* the JSON; the weights go beside it */
} QuantiseOptions;

/* How modules are built: the compiler's steps, with the user's options. */
typedef struct QuantiseBuild {
  const void *context; /* the function's own */
  void (*graph)(const void *context, Graph *graph, const char *module);
} QuantiseBuild;

/* needs: infer_shapes. Prints a table of the layers to stdout. */
void quantise(const QuantiseOptions *options, Graph *graph, const QuantiseBuild *build);

#endif
