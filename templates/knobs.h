/* SPDX-License-Identifier: MIT */
/* Shared by templates and the compiler: values of knobs that choose between kinds, and sizes of scratch memory. */
#ifndef KNOBS_H
#define KNOBS_H

/* KIND of pool_plain.c and pool_blocked.c: the maximum; the mean over the points in the input, or over those in the
 * input and its padding; the P-th root of the sum of the P-th powers of the magnitudes. */
enum { POOL_MAX, POOL_MEAN, POOL_MEAN_WITH_PADDING, POOL_NORM };

/* Outputs that pool_plain.c and mean_pool_int8.c make at once where they combine the rows of windows first. */
enum { POOL_COLUMNS = 64 };

/* COMBINE of reduce.c and global_pool_blocked.c. */
enum { COMBINE_SUM, COMBINE_MAX, COMBINE_MIN, COMBINE_PRODUCT };

/* OPERATION of reduce_plain.c. The last three are of f64 alone: the root of the sum of squares, the logarithm of the
 * sum, and of the sum of exponentials. */
enum {
  REDUCE_SUM,
  REDUCE_MAX,
  REDUCE_MIN,
  REDUCE_PRODUCT,
  REDUCE_SQUARES,
  REDUCE_MAGNITUDES,
  REDUCE_MEAN,
  REDUCE_NORM,
  REDUCE_LOG,
  REDUCE_LOG_EXP
};

/* SCALE and BIAS of normalise.c: how many there are. */
enum { PARAMETER_NONE, PARAMETER_BY_PIECE, PARAMETER_BY_ELEMENT };

/* POWER of lrn.c: what beta is. */
enum { POWER_ANY, POWER_THREE_QUARTERS, POWER_HALF, POWER_ONE };

/* MODE of pad_map.c: the edge is repeated; reflected, the edge itself not repeated; the input starts again. */
enum { MAP_EDGE, MAP_REFLECT, MAP_WRAP };

/* MODE and PADDING of grid_sample.c. Beyond the border there are zeros, the element at the border, mirror images. */
enum { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC };
enum { BEYOND_ZEROS, BEYOND_BORDER, BEYOND_REFLECTION };

/* PLACE of resize_taps.c, as ONNX's coordinate_transformation_mode: half_pixel, half_pixel_symmetric,
 * pytorch_half_pixel, asymmetric, align_corners, tf_crop_and_resize, tf_half_pixel_for_nn. ROUND: its nearest_mode. */
enum { PLACE_HALF_PIXEL, PLACE_SYMMETRIC, PLACE_PYTORCH, PLACE_ASYMMETRIC, PLACE_CORNERS, PLACE_CROP, PLACE_MIDDLE };
enum { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, ROUND_DOWN, ROUND_UP };

/* REDUCTION of scatter_elements.c and scatter_nd.c: what becomes of the element that is there and the update. */
enum { UPDATE_REPLACES, UPDATE_ADDS, UPDATE_MULTIPLIES, UPDATE_MIN, UPDATE_MAX };

/* OPERATION of elementwise_divide.c: the quotient towards zero; the remainder with the divisor's sign, or with the
 * dividend's. */
enum { DIVIDE_QUOTIENT, DIVIDE_FLOOR_REMAINDER, DIVIDE_REMAINDER };

/* INNER of copy_strided.c, what the innermost axes look like: any strides; both sides contiguous; the input does not
 * move (a fill); the output runs along the last axis, the input along the one before: a transposition, done in tiles.
 */
enum { INNER_ANY, INNER_CONTIGUOUS, INNER_FILL, INNER_TILED };

/* CELL of recurrent_steps.c. A GRU's reset gate comes after the product with R (linear_before_reset), or before it. */
enum { CELL_RNN, CELL_GRU_AFTER, CELL_GRU_BEFORE, CELL_LSTM };
/* Floats that rows of its states are padded to: a cache line, which two workers would else write in turns. */
enum { STATE_LINE = 16 };

/* FORM of fourier.c: complex points and bins; real points and half of their bins, or all of them; half of the bins and
 * real points. */
enum { FOURIER_COMPLEX, FOURIER_REAL, FOURIER_REAL_WHOLE, FOURIER_HALF };
/* Floats between its arrays of parts. */
enum { FOURIER_ROOM = 16 };

/* Of nms_select.c, in memory: numbers before a row's candidates, and after its corners: the longest vector. */
enum { NMS_HEAD = 16, NMS_PAD = 16 };

/* Of nonzero_count.c and nonzero.c, in memory: counts are a cache line apart. */
enum { NONZERO_CHUNKS = 64, NONZERO_APART = 8 };

#endif
