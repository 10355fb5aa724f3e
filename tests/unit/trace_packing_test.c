/* SPDX-License-Identifier: MIT */
/* Which packing can be done again as copies, of families made for this: of one that cannot, the node is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "arena_fixture.h"
#include "ir/family.h"
#include "ir/mutable.h"
#include "ir/tensor.h"
#include "ir_build.h"
#include "outcome.h"
#include "program/trace_packing.h"
#include "support/diagnostics.h"
#include "support/list.h"

static DType packed_dtype;
static double padding;

static void pack_tensor(Graph *graph, Node *node, const Tensor *tensor) {
  graph_pack(graph, node, graph_constant(graph, "packed", tensor->dtype, 1, tensor->shape, tensor->data));
}

/* As families read weights that can change: value_element() is not for these. */
static double number_at(const Value *value, int64_t i) {
  const Tensor tensor = {.dtype = value->dtype, .data = (void *)value->data};
  return tensor_get(&tensor, i);
}

/* The elements backwards, and then the padding. */
static void pack_backwards(Graph *graph, Node *node) {
  int64_t n = value_count(node->inputs[1]), padded = n + 2;
  Tensor *packed = tensor_new(graph->arena, packed_dtype, 1, &padded);
  for (int64_t i = 0; i < padded; i++) tensor_set(packed, i, i < n ? number_at(node->inputs[1], n - 1 - i) : padding);
  pack_tensor(graph, node, packed);
}

/* Those that are not 0, behind a first element. */
static void pack_without_zeros(Graph *graph, Node *node) {
  int64_t n = value_count(node->inputs[1]), kept = 1;
  for (int64_t i = 0; i < n; i++) kept += number_at(node->inputs[1], i) > 0;
  Tensor *packed = tensor_new(graph->arena, packed_dtype, 1, &kept);
  tensor_set(packed, 0, number_at(node->inputs[1], 0));
  for (int64_t i = 0, at = 1; i < n; i++)
    if (number_at(node->inputs[1], i) > 0) tensor_set(packed, at++, number_at(node->inputs[1], i));
  pack_tensor(graph, node, packed);
}

/* A recurrent layer's two biases. */
static void pack_sums(Graph *graph, Node *node) {
  int64_t n = value_count(node->inputs[3]) / 2;
  Tensor *packed = tensor_new(graph->arena, packed_dtype, 1, &n);
  for (int64_t i = 0; i < n; i++)
    tensor_set(packed, i, number_at(node->inputs[3], i) + number_at(node->inputs[3], n + i));
  pack_tensor(graph, node, packed);
}

/* The node, by a family that packs so, with the constant as its one weight that can change. */
static void trace_node(const char *op, const char *inputs, int weight, void (*pack)(Graph *graph, Node *node)) {
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, op, inputs, "", 1);
  KernelFamily *family = ARENA_NEW(arena, KernelFamily);
  OpInfo *info = arena_copy(arena, node->op, sizeof *node->op);
  family->pack = pack;
  info->family = family;
  node->op = info;
  graph->mutables = ARENA_NEW(arena, MutableWeights);
  MutableWeight *it =
      LIST_ADD(arena, graph->mutables->weights, graph->mutables->n_weights, graph->mutables->weight_capacity);
  it->value = it->given = node->inputs[weight];
  it->value->block = 1;
  trace_packing(graph, node);
  assert_int_equal(graph->mutables->n_packed, 1);
  assert_true(graph->mutables->n_copies > 0);
}

static void trace_backwards(void *argument) {
  (void)argument;
  trace_node("Add", "f32[2,3] f32[2,3]!", 1, pack_backwards);
}

static void trace_without_zeros(void *argument) {
  (void)argument;
  trace_node("Add", "f32[2,3] f32[2,3]!", 1, pack_without_zeros);
}

static void trace_sums(void *argument) {
  (void)argument;
  trace_node("RNN", "f32[T,B,4] f32[1,8,4]! f32[1,8,8]! f32[1,16]!", 3, pack_sums);
}

static void expect(DType dtype, double number, void (*trace)(void *), bool good) {
  packed_dtype = dtype;
  padding = number;
  Outcome outcome = outcome_of(trace, NULL);
  expect_outcome(&outcome, good ? 0 : EXIT_UNSUPPORTED, good ? NULL : "computes with the weights when it packs them",
                 NULL);
}

/* What no copy writes is 0 in the module. */
static void padding_must_be_zero(void **state) {
  (void)state;
  expect(RNNCC_F32, 0, trace_backwards, true);
  expect(RNNCC_BF16, 0, trace_backwards, true);
  expect(RNNCC_F32, 1, trace_backwards, false);
  expect(RNNCC_F32, NAN, trace_backwards, false);
  expect(RNNCC_I32, 0, trace_backwards, false);
}

static void what_is_packed_has_the_same_form_whatever_the_numbers(void **state) {
  (void)state;
  expect(RNNCC_F32, 0, trace_without_zeros, false);
}

/* The module adds f32 only. */
static void sums_must_be_of_f32(void **state) {
  (void)state;
  expect(RNNCC_F32, 0, trace_sums, true);
  expect(RNNCC_BF16, 0, trace_sums, false);
  expect(RNNCC_F16, 0, trace_sums, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(padding_must_be_zero, setup, teardown),
      cmocka_unit_test_setup_teardown(what_is_packed_has_the_same_form_whatever_the_numbers, setup, teardown),
      cmocka_unit_test_setup_teardown(sums_must_be_of_f32, setup, teardown),
  };
  return cmocka_run_group_tests_name("trace_packing", tests, NULL, NULL);
}
