/* SPDX-License-Identifier: MIT */
/* fuse_epilogue with a family that accepts everything: nodes are fused only if nothing else reads the value between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ir/family.h"
#include "ir_build.h"
#include "passes.h"
#include "reference/reference.h"

static Arena *arena;
static OpInfo matmul; /* MatMul in a family that takes every epilogue */

static bool take_all(const Node *host, const Node *epilogue) {
  assert_ptr_equal(epilogue->inputs[0], host->outputs[0]);
  return true;
}
static const KernelFamily greedy = {.takes_epilogue = take_all};
static const KernelFamily refusing = {0};

static int setup(void **state) {
  (void)state;
  arena = arena_new();
  matmul = *op_info(OP_MatMul);
  matmul.family = &greedy;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  arena_free(arena);
  return 0;
}

/* Nodes of {op, inputs}. The family of MatMul accepts every epilogue, other families none. The last node makes the
 * output. */
static Graph *built(const char *const (*nodes)[2], int n) {
  Graph *graph = build_graph(arena);
  for (int i = 0; i < n; i++) {
    Node *node = build_node(graph, nodes[i][0], nodes[i][1], "", 1);
    OpInfo *op = arena_copy(arena, node->op, sizeof *op);
    op->family = &refusing;
    node->op = is_op(node, OP_MatMul) ? &matmul : op;
  }
  build_output(graph, graph->nodes[n - 1]->outputs[0]);
  infer_shapes(graph);
  return graph;
}
#define BUILT(...)                                                                                                     \
  built((const char *const[][2]){__VA_ARGS__}, sizeof((const char *const[][2]){__VA_ARGS__}) / (2 * sizeof(char *)))

static Graph *fused(Graph *graph) {
  fuse_epilogue(graph);
  verify(graph);
  return graph;
}

static void a_chain_of_bias_and_activation_fuses(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Add", "@0 f32[8]!"}, {"Relu", "@1"}));
  assert_int_equal(graph->n_nodes, 1);
  Node *host = graph->nodes[0];
  assert_int_equal(host->n_epilogue, 2);
  assert_int_equal(host->n_inputs, 3);
  assert_ptr_equal(host->epilogue[0]->inputs[1], host->inputs[2]);
  assert_ptr_equal(host->outputs[0], graph->outputs[0]);
  assert_string_equal(graph->outputs[0]->name, "y5");
}

static void the_result_may_be_the_second_operand_where_order_does_not_matter(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Add", "f32[8]! @0"}));
  assert_int_equal(graph->n_nodes, 1);
  graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Sub", "f32[8]! @0"}));
  assert_int_equal(graph->n_nodes, 2);
  graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Sub", "@0 f32[8]!"}));
  assert_int_equal(graph->n_nodes, 1);
}

static void a_value_with_another_reader_stays(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Relu", "@0"}, {"Tanh", "@0"}, {"Div", "@1 @2"}));
  assert_int_equal(graph->nodes[0]->n_epilogue, 0);
  graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Mul", "@0 @0"}));
  assert_int_equal(graph->nodes[0]->n_epilogue, 0);
}

static void a_graph_output_stays(void **state) {
  (void)state;
  Graph *graph = BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Relu", "@0"});
  build_output(graph, graph->nodes[0]->outputs[0]);
  fused(graph);
  assert_int_equal(graph->n_nodes, 2);
}

static void a_result_that_broadcasts_wider_stays(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[1,4] f32[4,8]"}, {"Add", "@0 f32[T,8]"}));
  assert_int_equal(graph->n_nodes, 2);
}

static void only_element_wise_nodes_fuse(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Softmax", "@0"}));
  assert_int_equal(graph->n_nodes, 2);
}

static void a_family_may_refuse(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"Softmax", "f32[T,4]"}, {"Relu", "@0"}));
  assert_int_equal(graph->n_nodes, 2);
}

/* If two products are added, the later one takes the earlier one's result as an operand. */
static void the_later_of_two_hosts_takes_a_residual_add(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"MatMul", "f32[T,4] f32[4,8]"}, {"Add", "@0 @1"}));
  assert_int_equal(graph->n_nodes, 2);
  assert_int_equal(graph->nodes[0]->n_epilogue, 0);
  assert_int_equal(graph->nodes[1]->n_epilogue, 1);
  assert_ptr_equal(graph->nodes[1]->inputs[2], graph->nodes[0]->outputs[0]);
}

/* The other operand is computed after the product: so the product is moved behind it. */
static void a_host_moves_behind_what_its_epilogue_reads(void **state) {
  (void)state;
  Graph *graph = fused(BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Softmax", "f32[T,8]"}, {"Sub", "@0 @1"}));
  assert_int_equal(graph->n_nodes, 2);
  assert_string_equal(graph->nodes[0]->op->name, "Softmax");
  assert_int_equal(graph->nodes[1]->n_epilogue, 1);
}

/* Else a family that looks for an optional input might find an epilogue's operand there. */
static void absent_optional_inputs_stay_absent(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *gemm = build_node(graph, "Gemm", "f32[T,4] f32[4,8]", "", 1);
  build_node(graph, "Add", "@0 f32[8]!", "", 1);
  OpInfo op = *gemm->op;
  op.family = &greedy;
  gemm->op = &op;
  build_output(graph, graph->nodes[1]->outputs[0]);
  infer_shapes(graph);
  fused(graph);
  assert_int_equal(gemm->n_inputs, 4);
  assert_null(gemm->inputs[2]);
  assert_non_null(gemm->inputs[3]);
}

static const Tensor *run(Graph *graph) {
  const int64_t symbols[] = {3, 1}, x_shape[] = {3, 4}, w_shape[] = {4, 8};
  const Tensor *inputs[] = {tensor_new(arena, RNNCC_F32, 2, x_shape), tensor_new(arena, RNNCC_F32, 2, w_shape)};
  for (int64_t i = 0; i < 12; i++) tensor_set_int((Tensor *)inputs[0], i, i % 5 - 2);
  for (int64_t i = 0; i < 32; i++) tensor_set_int((Tensor *)inputs[1], i, i % 7 - 3);
  Tensor *output;
  const char *wrong = reference_run(arena, graph, inputs, &output, symbols);
  if (wrong) fail_msg("%s", wrong);
  return output;
}

/* Small integers: all sums are exact, so the results are bit-identical. */
static void fusing_keeps_the_result(void **state) {
  (void)state;
  Graph *graph = BUILT({"MatMul", "f32[T,4] f32[4,8]"}, {"Add", "f32[8]! @0"}, {"Relu", "@1"}, {"Mul", "@2 f32(3)"},
                       {"Sub", "@3 f32[1,8]!"});
  const Tensor *before = run(graph);
  fused(graph);
  assert_int_equal(graph->n_nodes, 1);
  const Tensor *after = run(graph);
  assert_memory_equal(before->data, after->data, 24 * sizeof(float));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_chain_of_bias_and_activation_fuses),
      TEST(the_result_may_be_the_second_operand_where_order_does_not_matter),
      TEST(a_value_with_another_reader_stays),
      TEST(a_graph_output_stays),
      TEST(a_result_that_broadcasts_wider_stays),
      TEST(only_element_wise_nodes_fuse),
      TEST(a_family_may_refuse),
      TEST(the_later_of_two_hosts_takes_a_residual_add),
      TEST(a_host_moves_behind_what_its_epilogue_reads),
      TEST(absent_optional_inputs_stay_absent),
      TEST(fusing_keeps_the_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
