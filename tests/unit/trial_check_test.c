/* SPDX-License-Identifier: MIT */
/* A trial's results are checked in a part of the channels: right results pass, a wrong vector of channels is found
 * wherever it is, and only sums that are rounded have a tolerance. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "machine/targets.h"
#include "passes.h"
#include "reference/reference.h"
#include "tune/trial_check.h"

enum { CHANNELS = 101, PIXELS = 32 * 32, IMAGES = 2 };

typedef struct Judged {
  Expected expected;
  float *y; /* the whole right result */
  int64_t count;
} Judged;

static const Tensor *tensor_of(const Value *value) {
  Tensor *tensor = ARENA_NEW(arena, Tensor);
  *tensor = (Tensor){.dtype = value->dtype, .rank = value->rank, .data = (void *)value->data};
  for (int axis = 0; axis < value->rank; axis++) tensor->shape[axis] = dim_value(value->shape[axis]);
  return tensor;
}

/* 1x1 with bias, residual and Relu: 13 million multiply-adds, too many for all channels. */
static Node *large_convolution(Graph **graph) {
  *graph = build_graph(arena);
  build_config(*graph, "x86-64-v4");
  build_node(*graph, "Conv", "f32[2,64,32,32] f32[101,64,1,1]! f32[101]!", "", 1);
  build_node(*graph, "Add", "@0 f32[2,101,32,32]", "", 1);
  build_output(*graph, build_node(*graph, "Relu", "@1", "", 1)->outputs[0]);
  infer_shapes(*graph);
  fuse_epilogue(*graph);
  assert_int_equal((*graph)->n_nodes, 1);
  return (*graph)->nodes[0];
}

static Judged judged(void) {
  Graph *graph;
  const Node *node = large_convolution(&graph);
  assert_true(can_be_tried(node));
  TrialCase trial = trial_case(arena, graph, node, node->layout);
  Judged judged = {0};
  assert_null(trial_expected(&trial, &judged.expected));
  assert_int_equal(trial.n_inputs, 2);
  const Tensor *inputs[] = {trial.inputs[0], tensor_of(trial.node.inputs[1]), tensor_of(trial.node.inputs[2]),
                            trial.inputs[1]};
  Tensor *output;
  assert_null(reference_node(arena, &trial.node, inputs, &output, trial.symbols));
  judged.y = output->data;
  judged.count = tensor_count(output);
  return judged;
}

static void a_part_of_the_channels_is_computed(void **state) {
  (void)state;
  Judged j = judged();
  assert_true(j.expected.n_channels < CHANNELS / 8);
  assert_true(trial_is_right(&j.expected, j.y, j.count, false));
  assert_false(trial_is_right(&j.expected, j.y, j.count - 1, false));
}

static void a_wrong_vector_of_channels_is_found(void **state) {
  (void)state;
  Judged j = judged();
  for (int first = 0; first < IMAGES * CHANNELS; first += first % CHANNELS + 16 < CHANNELS ? 16 : CHANNELS % 16) {
    int end = first % CHANNELS + 16 < CHANNELS ? first + 16 : first + CHANNELS % 16;
    float *pixel = j.y + 7;
    for (int k = first; k < end; k++) pixel[k * PIXELS] += 1;
    assert_false(trial_is_right(&j.expected, j.y, j.count, false));
    for (int k = first; k < end; k++) pixel[k * PIXELS] -= 1;
  }
  assert_true(trial_is_right(&j.expected, j.y, j.count, false));
}

/* Relative to the largest sum, which is also the largest result: 1e-4 for Winograd, 0 for others. */
static void only_rounded_sums_may_be_off(void **state) {
  (void)state;
  Judged j = judged();
  int largest = 0;
  for (int i = 0; i < PIXELS; i++)
    if (j.y[i] > j.y[largest]) largest = i; /* of channel 0 */
  float right = j.y[largest];
  j.y[largest] = right * (1 + 2e-5f);
  assert_true(trial_is_right(&j.expected, j.y, j.count, true));
  assert_false(trial_is_right(&j.expected, j.y, j.count, false));
  j.y[largest] = right * 1.01f;
  assert_false(trial_is_right(&j.expected, j.y, j.count, true));
  j.y[largest] = NAN;
  assert_false(trial_is_right(&j.expected, j.y, j.count, true));
}

/* The first input of its epilogue is absent. */
static void a_clip_without_lower_bound_is_no_residual(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_config(graph, "x86-64-v4");
  build_node(graph, "Conv", "f32[2,64,8,8] f32[32,64,1,1]!", "", 1);
  build_output(graph, build_node(graph, "Clip", "@0 _ f32(6)", "", 1)->outputs[0]);
  infer_shapes(graph);
  fuse_epilogue(graph);
  assert_int_equal(graph->n_nodes, 1);
  assert_true(can_be_tried(graph->nodes[0]));
  assert_int_equal(trial_case(arena, graph, graph->nodes[0], graph->nodes[0]->layout).n_inputs, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_part_of_the_channels_is_computed),
      cmocka_unit_test(a_wrong_vector_of_channels_is_found),
      cmocka_unit_test(only_rounded_sums_may_be_off),
      cmocka_unit_test(a_clip_without_lower_bound_is_no_residual),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
