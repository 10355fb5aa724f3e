/* SPDX-License-Identifier: MIT */
/* Window functions, Fourier transforms, mel weights. */
#include "shapes/signal.h"

#include "shapes/fourier_plan.h"
#include "shapes/shape.h"

/* Windows are computed by the compiler and stored in the module; longer ones are refused. */
enum { MAX_WINDOW = 1 << 24 };

/* `output_datatype`, f32 if it is not given. */
static bool set_output_type(Node *node) {
  const Attribute *given = node_attribute(node, ATTR_output_datatype);
  node->outputs[0]->dtype = RNNCC_F32;
  return !given || node_dtype(node, ATTR_output_datatype) == RNNCC_F32 ||
         shape_unsupported(node, "`output_datatype` is \"%.100s\"; it must be f32", given->s);
}

/* The input's one integer, which must be known and in 1..MAX_WINDOW. */
static bool read_extent(Graph *graph, const Node *node, int input, int64_t *extent) {
  IntList list;
  if (!operand_ints(graph, node, ATTR_NONE, input, &list)) return false;
  if (list.n != 1) return shape_error(node, "input %d must be a scalar", input);
  *extent = list.items[0];
  if (*extent > MAX_WINDOW)
    return shape_unsupported(node, "input %d is %lld; at most %d is supported", input, (long long)*extent, MAX_WINDOW);
  return *extent >= 1 || shape_error(node, "input %d is %lld; it must be at least 1", input, (long long)*extent);
}

bool shape_signal_window(Graph *graph, Node *node) {
  int64_t size;
  if (!set_output_type(node) || !read_extent(graph, node, 0, &size)) return false;
  const Dim *extent = dim_const(graph->dims, size);
  return set_shape(graph, node, 0, 1, &extent);
}

static bool check_edge(Graph *graph, const Node *node, int input) {
  const Value *value = node->inputs[input];
  if (value->data && value_count(value) == 1) return true;
  if (value->data) return shape_error(node, "input %d, %s, must be one number", input, shape_text(graph, value));
  return shape_unsupported(node, "input %d (`%.200s`) must be known at compile time: a constant%s", input, value->name,
                           freeze_hint(graph, value));
}

/* [dft_length / 2 + 1, num_mel_bins] */
bool shape_mel_weights(Graph *graph, Node *node) {
  int64_t bins, length, rate;
  if (!set_output_type(node) || !read_extent(graph, node, 0, &bins) || !read_extent(graph, node, 1, &length) ||
      !read_extent(graph, node, 2, &rate) || !check_edge(graph, node, 3) || !check_edge(graph, node, 4))
    return false;
  if ((length / 2 + 1) * bins > MAX_WINDOW)
    return shape_unsupported(node, "its %lld x %lld weights are too many", (long long)(length / 2 + 1),
                             (long long)bins);
  const Dim *shape[] = {dim_const(graph->dims, length / 2 + 1), dim_const(graph->dims, bins)};
  return set_shape(graph, node, 0, 2, shape);
}

/* ---- the Fourier transform ---- */

/* Most numbers in the matrix of a transform of frames. */
static const int64_t MAX_MATRIX = INT64_C(1) << 24;

int64_t dft_period(int64_t length) {
  int64_t period = 1;
  while (period < 2 * length - 1) period *= 2;
  return period;
}

/* Input 2, or the attribute of older opsets, or the last axis before that of real and imaginary part. */
static bool read_dft_axis(Graph *graph, const Node *node, int *axis) {
  IntList list;
  int64_t given = node_has(node, ATTR_axis) ? node_int(node, ATTR_axis) : -2;
  if (!operand_ints(graph, node, ATTR_NONE, node->n_inputs > 2 ? 2 : -1, &list)) return false;
  if (list.given && (node_has(node, ATTR_axis) || list.n != 1))
    return shape_error(node, "`axis` must be given once: as an attribute or as input 2, a scalar");
  if (list.given) given = list.items[0];
  *axis = check_axis(node, "axis", given, node->inputs[0]->rank);
  if (*axis < 0) return false;
  return *axis < node->inputs[0]->rank - 1 || shape_error(node, "the last axis is of real and imaginary parts");
}

/* 1 or 2 numbers an element, on the last axis. */
static bool read_parts(Graph *graph, const Node *node, int64_t *parts) {
  const Value *x = node->inputs[0];
  const Dim *extent = x->shape[x->rank - 1];
  if (!dim_equals(extent, 1) && !dim_equals(extent, 2))
    return shape_error(node, "the last axis of %s must be 1 or 2: real numbers or complex", shape_text(graph, x));
  *parts = dim_value(extent);
  return true;
}

/* Half a spectrum is of real numbers: those that it is made from, or those that the inverse makes of it. */
static bool check_onesided(Graph *graph, const Node *node, const Dft *dft) {
  int64_t wanted = dft->inverse ? 2 : 1;
  if (!dft->onesided || dft->parts == wanted) return true;
  return shape_error(node, "%s: expected %s numbers, found %s",
                     dft->inverse ? "`inverse` and `onesided`" : "`onesided`", dft->inverse ? "complex" : "real",
                     shape_text(graph, node->inputs[0]));
}

/* Without a plan, the transform is a product or several transforms of `dft_period` points. */
static bool check_length(const Node *node, int64_t length, bool real) {
  return fourier_has_plan(length, real) || length <= MAX_DFT_MATRIX || dft_period(length) <= MAX_DFT ||
         shape_unsupported(node, "a transform of %lld numbers is too long, as a prime factor is above %d",
                           (long long)length, MAX_FOURIER_RADIX);
}

static int64_t bins_of(int64_t length, bool onesided) { return onesided ? length / 2 + 1 : length; }

/* Of an axis of `extent`, where no length is given: half a spectrum is taken for that of an even length. */
static int64_t default_length(const Dft *dft, int64_t extent) {
  return dft->inverse && dft->onesided ? 2 * (extent - 1) : extent;
}

/* Its transform has a period, which the compiler chooses. */
static bool take_length_of_run(Graph *graph, const Node *node, Dft *dft) {
  const Value *x = node->inputs[0];
  dft->of_run = x->shape[dft->axis];
  if (dft->inverse && dft->onesided)
    return shape_unsupported(node, "the inverse of half a spectrum: axis %d of %s must be known at compile time",
                             dft->axis, shape_text(graph, x));
  if (dim_lower(dft->of_run) < 1)
    return shape_unsupported(node, "axis %d of %s may be 0 long; a transform has at least 1 point", dft->axis,
                             shape_text(graph, x));
  return dim_upper(dft->of_run) <= MAX_DFT / 2 ||
         shape_unsupported(node,
                           "axis %d of %s may be %lld long; at most %d points are supported where only the run "
                           "knows how many",
                           dft->axis, shape_text(graph, x), (long long)dim_upper(dft->of_run), MAX_DFT / 2);
}

/* Input 1, or what the axis says. */
static bool read_length(Graph *graph, const Node *node, Dft *dft) {
  const Value *x = node->inputs[0];
  const Dim *extent = x->shape[dft->axis];
  bool given = node_input(node, 1);
  if (given && !read_extent(graph, node, 1, &dft->length)) return false;
  if (!given && !dim_is_const(extent)) return take_length_of_run(graph, node, dft);
  if (!given) dft->length = default_length(dft, dim_value(extent));
  if (dft->length < 1)
    return shape_error(node, "axis %d of %s is too short for a transform", dft->axis, shape_text(graph, x));
  return check_length(node, dft->length, dft->parts == 1 || (dft->inverse && dft->onesided));
}

bool read_dft(Graph *graph, const Node *node, Dft *dft) {
  *dft = (Dft){.inverse = node_int(node, ATTR_inverse) != 0, .onesided = node_int(node, ATTR_onesided) != 0};
  if (!check_rank(graph, node, 0, 2, MAX_RANK) || !read_dft_axis(graph, node, &dft->axis)) return false;
  if (!read_parts(graph, node, &dft->parts) || !check_onesided(graph, node, dft)) return false;
  if (!read_length(graph, node, dft)) return false;
  int64_t bins = bins_of(dft->length, dft->onesided);
  dft->result_parts = dft->inverse && dft->onesided ? 1 : 2;
  dft->points = dft->inverse ? bins : dft->length;
  dft->results = dft->inverse ? dft->length : bins;
  return true;
}

static const Dim *results_of(Graph *graph, const Dft *dft) {
  const Dim *length = dft->of_run;
  if (!length) return dim_const(graph->dims, dft->results);
  if (!dft->onesided) return length;
  return dim_add(graph->dims, dim_div(graph->dims, length, dim_const(graph->dims, 2)), dim_const(graph->dims, 1));
}

bool shape_dft(Graph *graph, Node *node) {
  Dft dft;
  const Dim *shape[MAX_RANK];
  const Value *x = node->inputs[0];
  if (!read_dft(graph, node, &dft)) return false;
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = x->shape[axis];
  shape[dft.axis] = results_of(graph, &dft);
  shape[x->rank - 1] = dim_const(graph->dims, dft.result_parts);
  return set_shape(graph, node, 0, x->rank, shape);
}

/* ---- of frames of a signal ---- */

/* Input 3, or the window's length. */
static bool read_frame(Graph *graph, const Node *node, Stft *stft) {
  if (node_input(node, 3) && !read_extent(graph, node, 3, &stft->length)) return false;
  if (!node_input(node, 2)) return node_input(node, 3) || shape_error(node, "neither a window nor a frame_length");
  const Value *window = node->inputs[2];
  if (!check_rank(graph, node, 2, 1, 1)) return false;
  if (!dim_is_const(window->shape[0]))
    return shape_unsupported(node, "the length of %s must be known at compile time", shape_text(graph, window));
  if (node_input(node, 3) && stft->length != dim_value(window->shape[0]))
    return shape_error(node, "frame_length is %lld, the window %s", (long long)stft->length, shape_text(graph, window));
  stft->length = dim_value(window->shape[0]);
  return true;
}

bool read_stft(Graph *graph, const Node *node, Stft *stft) {
  const Value *x = node->inputs[0];
  *stft = (Stft){.onesided = node_int(node, ATTR_onesided) != 0};
  if (!check_rank(graph, node, 0, 2, 3) || !read_extent(graph, node, 1, &stft->step)) return false;
  stft->parts = 1; /* PyTorch leaves the last axis of real numbers out */
  if (!read_frame(graph, node, stft) || (x->rank == 3 && !read_parts(graph, node, &stft->parts))) return false;
  stft->onesided = stft->onesided && stft->parts == 1; /* of complex numbers, all bins */
  const Dim *left = dim_sub(graph->dims, x->shape[1], dim_const(graph->dims, stft->length));
  if (dim_lower(left) < 0)
    return shape_error(node, "%s may be shorter than a frame of %lld", shape_text(graph, x), (long long)stft->length);
  stft->bins = bins_of(stft->length, stft->onesided);
  stft->frames =
      dim_add(graph->dims, dim_div(graph->dims, left, dim_const(graph->dims, stft->step)), dim_const(graph->dims, 1));
  return fourier_has_plan(stft->length, stft->parts == 1) ||
         stft->bins * stft->length * 2 * stft->parts <= MAX_MATRIX ||
         shape_unsupported(node, "frames of %lld are too long, as a prime factor is above %d", (long long)stft->length,
                           MAX_FOURIER_RADIX);
}

bool shape_stft(Graph *graph, Node *node) {
  Stft stft;
  if (!read_stft(graph, node, &stft)) return false;
  const Dim *shape[] = {node->inputs[0]->shape[0], stft.frames, dim_const(graph->dims, stft.bins),
                        dim_const(graph->dims, 2)};
  return set_shape(graph, node, 0, 4, shape);
}
