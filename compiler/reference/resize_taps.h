/* SPDX-License-Identifier: MIT */
/*
 * ONNX Resize. Each axis is resized on its own: an output element is a weighted sum of neighbouring input elements,
 * whose place and weights are computed here, once, for the shape rule, the reference and the kernels. Coordinates are
 * float, as in ONNX Runtime: what lies on a tie does so in both.
 */
#ifndef RNNCC_RESIZE_H
#define RNNCC_RESIZE_H

#include "ir/graph.h"

typedef struct ResizeAxis {
  int64_t in, out;
  float scale;
  float length; /* in * scale, which `out` may be rounded from */
  float roi[2]; /* begin and end of tf_crop_and_resize, in parts of the input */
} ResizeAxis;

/* Output element o is the sum of weight[o * n + k] * input[start[o] + k], k < n <= in; start -1: it lies outside and is
 * the extrapolation value. */
typedef struct ResizeTaps {
  int n;
  int32_t *start;
  float *weight;
} ResizeTaps;

/* With `given` 0 the scale follows from the extents. */
ResizeAxis resize_axis(int64_t in, int64_t out, float given);
/* The axis is copied as it is. */
bool resize_is_identity(const Node *node, const ResizeAxis *axis);
ResizeTaps resize_identity(Arena *arena, int64_t extent);
/* Taps of an output element, of an axis long enough; and how much the filter is widened against aliasing, <= 1. */
int64_t resize_tap_count(const Node *node, const ResizeAxis *axis);
double resize_narrow(const Node *node, const ResizeAxis *axis);
ResizeTaps resize_taps(Arena *arena, const Node *node, const ResizeAxis *axis);

/* If `keep_aspect_ratio_policy` requires one scale for all axes: returns it, and sets `sizes` to the scaled extents.
 * Else returns 0. */
float resize_keep_aspect(const Node *node, int n, const int64_t *in, int64_t *sizes);

/* The place of input axis `axis` in the lists that roi, scales and sizes are: -1 if it is not among the attribute
 * `axes`. */
int resize_position(const Node *node, int axis, int rank);

/* A node with its shapes. */
typedef struct Resize {
  int rank;
  const Dim *out[MAX_RANK];
  bool resized[MAX_RANK];
  bool at_run_time[MAX_RANK]; /* only the run knows the extents of `axis` and what follows: they are 0 */
  ResizeAxis axis[MAX_RANK];  /* of resized ones */
} Resize;
/* False after an error. */
bool read_resize(Graph *graph, const Node *node, Resize *resize);

#endif
