/* SPDX-License-Identifier: MIT */
#include "tune/trial_check.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "machine/targets.h"
#include "reference/reference.h"

/* Tolerance relative to the largest result: the stated bound of Winograd convolutions
 * (tests/kernels/conv_winograd_check.c), far above the error of a sum in another order. */
static const double WINOGRAD_ERROR = 1e-4;

/* Relative, of one step of an epilogue: 4 ULP, that of activations. */
static const double STEP_ERROR = 4 * FLT_EPSILON;

/* Multiply-adds that the reference may take: about a second. */
static const double MAX_MACS = 1e8;

/* ---- which channels ---- */

/* Multiply-adds of one output channel. */
static double channel_macs(const Tensor *y, const Tensor *w) {
  return (double)tensor_count(y) / (double)y->shape[1] * (double)tensor_count(w) / (double)w->shape[0];
}

/* All channels, if they are few or their groups tie them to inputs. Else one lane of a vector, each time another, of as
 * many vectors as time allows, and the last channel, whose vector may have unused lanes. */
static void pick_channels(const TrialCase *trial, const Tensor *y, const Tensor *w, Expected *expected) {
  int64_t all = y->shape[1], step = trial->model->config->target->lanes + 1, vectors = all / step;
  double macs = channel_macs(y, w), all_macs = macs * (double)all, few_macs = macs * (double)vectors;
  int64_t *channels = ARENA_ARRAY(trial->arena, int64_t, all);
  if (few_macs > MAX_MACS) step *= (int64_t)ceil(few_macs / MAX_MACS);
  if (all_macs <= MAX_MACS / 8 || node_int(&trial->node, ATTR_group) != 1) step = 1;
  int64_t count = 0;
  for (int64_t k = 0; k < all; k += step) channels[count++] = k;
  if (channels[count - 1] != all - 1) channels[count++] = all - 1;
  expected->all_channels = all;
  expected->n_channels = count;
  expected->channels = channels;
}

/* The checked slices of an axis: axis 1 for channels of a tensor, axis 0 for kernels and biases. */
static Tensor *picked(const TrialCase *trial, const Tensor *from, int axis, const Expected *expected) {
  int64_t shape[MAX_RANK], before = 1, after = 1, count = expected->n_channels;
  for (int i = 0; i < from->rank; i++) shape[i] = i == axis ? count : from->shape[i];
  for (int i = 0; i < axis; i++) before *= from->shape[i];
  for (int i = axis + 1; i < from->rank; i++) after *= from->shape[i];
  Tensor *to = tensor_new(trial->arena, from->dtype, from->rank, shape);
  for (int64_t i = 0; i < before; i++)
    for (int64_t k = 0; k < count; k++)
      memcpy((float *)to->data + (i * count + k) * after,
             (const float *)from->data + (i * from->shape[axis] + expected->channels[k]) * after,
             (size_t)after * sizeof(float));
  return to;
}

/* ---- the reference ---- */

/* The sums of the picked channels, before the epilogue. */
static const char *run_sums(const TrialCase *trial, Expected *expected, Tensor **sums) {
  Node bare = trial->node;
  const char *wrong = NULL;
  Tensor *y = reference_tensor(trial->arena, bare.outputs[0], trial->symbols),
         *w = reference_tensor(trial->arena, bare.inputs[1], trial->symbols);
  pick_channels(trial, y, w, expected);
  const Value *bias = node_input(&bare, 2);
  bare.n_inputs = bias ? 3 : 2;
  bare.n_epilogue = bare.n_prologue = 0;
  const Tensor *inputs[3] = {trial->inputs[0], picked(trial, w, 0, expected)};
  if (bias) inputs[2] = picked(trial, reference_tensor(trial->arena, bias, trial->symbols), 0, expected);
  if (trial->node.n_prologue)
    inputs[0] = reference_prologue(trial->arena, &trial->node, inputs[0], trial->symbols, &wrong);
  if (wrong) return wrong;
  y->shape[1] = expected->n_channels;
  *sums = tensor_new(trial->arena, RNNCC_F32, y->rank, y->shape);
  return bare.op->reference(&bare, inputs, sums);
}

/* The operands of the epilogue: the residual's picked channels, and scalars. */
static const Tensor **operands_of(const TrialCase *trial, const Expected *expected) {
  const Node *node = &trial->node;
  int own = node->op->max_inputs;
  const Tensor **extra = ARENA_ARRAY(trial->arena, const Tensor *, node->n_inputs + 1);
  for (int i = own; i < node->n_inputs; i++) {
    const Value *input = node->inputs[i];
    if (input)
      extra[i - own] = input->data ? reference_tensor(trial->arena, input, trial->symbols)
                                   : picked(trial, trial->inputs[1], 1, expected);
  }
  return extra;
}

static double largest_of(const Tensor *tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor_count(tensor); i++) largest = fmax(largest, fabs(tensor_get(tensor, i)));
  return largest;
}

/* The epilogue of the sums with `off` added. */
static const char *finish(const TrialCase *trial, const Tensor *sums, const Tensor *const *extra, double off,
                          Tensor **result) {
  Tensor *moved = tensor_new(trial->arena, RNNCC_F32, sums->rank, sums->shape);
  for (int64_t i = 0; i < tensor_count(sums); i++) tensor_set(moved, i, tensor_get(sums, i) + off);
  return reference_epilogue(trial->arena, &trial->node, moved, extra, result);
}

/* Applies the epilogue to the sums moved by their tolerance, up and down. */
static const char *find_rounded(const TrialCase *trial, const Tensor *sums, const Tensor *const *extra,
                                Expected *expected) {
  Tensor *ends[2], *y = expected->y;
  double off = WINOGRAD_ERROR * largest_of(sums);
  for (int i = 0; i < 2; i++) {
    const char *wrong = finish(trial, sums, extra, i ? -off : off, &ends[i]);
    if (wrong) return wrong;
  }
  expected->rounded = tensor_new(trial->arena, RNNCC_F32, y->rank, y->shape);
  for (int64_t i = 0; i < tensor_count(y); i++) {
    double at = tensor_get(y, i), up = fabs(tensor_get(ends[0], i) - at), down = fabs(tensor_get(ends[1], i) - at);
    tensor_set(expected->rounded, i, fmax(up, down));
  }
  return NULL;
}

const char *trial_expected(const TrialCase *trial, Expected *expected) {
  Tensor *sums;
  *expected = (Expected){0};
  const char *wrong = run_sums(trial, expected, &sums);
  if (wrong) return wrong;
  const Tensor **extra = operands_of(trial, expected);
  wrong = finish(trial, sums, extra, 0, &expected->y);
  if (wrong) return wrong;
  expected->rounding = STEP_ERROR * trial->node.n_epilogue * largest_of(expected->y);
  return find_rounded(trial, sums, extra, expected);
}

/* ---- comparing ---- */

static bool is_near(double got, double want, double off) {
  if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
  return fabs(got - want) <= off;
}

bool trial_is_right(const Expected *expected, const float *output, int64_t count, bool rounds) {
  const Tensor *y = expected->y;
  int64_t images = y->shape[0], pixels = 1;
  for (int axis = 2; axis < y->rank; axis++) pixels *= y->shape[axis];
  if (count != images * expected->all_channels * pixels) return false;
  for (int64_t i = 0; i < tensor_count(y); i++) {
    int64_t n = i / pixels / expected->n_channels, channel = expected->channels[i / pixels % expected->n_channels];
    double off = expected->rounding + (rounds ? tensor_get(expected->rounded, i) : 0);
    double got = (double)output[(n * expected->all_channels + channel) * pixels + i % pixels];
    if (!is_near(got, tensor_get(y, i), off)) return false;
  }
  return true;
}
