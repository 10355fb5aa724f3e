/* SPDX-License-Identifier: MIT */
/*
 * Random graphs compute the same before and after simplify, fuse_epilogue and alias_views: the reference interpreter
 * runs both on small integers, on which every sum here is exact, so the outputs must be bit-identical.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/simplify.h"
#include "ir_build.h"
#include "reference/reference.h"
#include "shapes/shape.h"
#include "support/text.h"

enum { GRAPHS = 1000, NODES = 14, INPUTS = 2 };

/* Possible next nodes: an op on a random value of a rank in [least, most], followed by operands (`?` is a random value
 * of the same shape) and attributes. They are always valid. */
static const struct Move {
  const char *op, *operands, *attributes;
  int least, most;
} moves[] = {
    {"Identity", "", "", 0, 8},
    {"Relu", "", "", 0, 8},
    {"Neg", "", "", 0, 8},
    {"Abs", "", "", 0, 8},
    {"Clip", " _ f32(2)", "", 0, 8},
    {"Cast", "", "to=f32", 0, 8},
    {"Add", " ?", "", 0, 8},
    {"Add", " f32(1)", "", 0, 8},
    {"Sub", " ?", "", 0, 8},
    {"Max", " ? ?", "", 0, 8},
    {"Min", " ?", "", 0, 8},
    {"Sum", " ? ?", "", 0, 8},
    {"Sum", "", "", 0, 8},
    {"Transpose", "", "", 0, 8},
    {"Transpose", "", "perm=[0,1]", 2, 2},
    {"Reshape", " i64=-1", "", 0, 8},
    {"Reshape", " i64=0,-1", "", 1, 8},
    {"Flatten", "", "axis=0", 0, 8},
    {"Flatten", "", "axis=1", 1, 8},
    {"Unsqueeze", " i64=0", "", 0, 4},
    {"Squeeze", "", "", 0, 8},
    {"Slice", " i64=0 i64=9223372036854775807", "", 1, 8},
    {"Slice", " i64=-1 i64=-9223372036854775808 i64=0 i64=-1", "", 1, 8},
    {"Pad", "", "pads=[0,0,0,0]", 2, 2},
    {"Pad", "", "pads=[1,0,0,1]", 2, 2},
    {"Concat", "", "axis=0", 1, 8},
    {"Concat", " ?", "axis=0", 1, 8},
    {"ReduceMax", "", "axes=[0] keepdims=1", 1, 8},
    {"Expand", " i64=1", "", 1, 8},
};
enum { N_MOVES = sizeof moves / sizeof *moves };

static const Value *result(const Graph *graph, int node) { return graph->nodes[node]->outputs[0]; }

/* A node whose result has the same shape as that of `node`. */
static int node_like(Graph *graph, int node) {
  for (int tries = 0; tries < 20; tries++) {
    int other = rand() % graph->n_nodes;
    if (!strcmp(text_of(graph, result(graph, other)), text_of(graph, result(graph, node)))) return other;
  }
  return node;
}

static void add_node(Graph *graph) {
  const struct Move *move = &moves[rand() % N_MOVES];
  int first = rand() % graph->n_nodes;
  if (result(graph, first)->rank < move->least || result(graph, first)->rank > move->most) return;
  Text operands = text_new(graph->arena);
  text_add(&operands, "@%d", first);
  for (const char *c = move->operands; *c; c++) {
    if (*c == '?')
      text_add(&operands, "@%d", node_like(graph, first));
    else
      text_add(&operands, "%c", *c);
  }
  if (!infer_node(graph, build_node(graph, move->op, operands.data, move->attributes, 1))) fail_msg("%s", move->op);
}

static Graph *random_graph(Arena *arena, unsigned seed) {
  srand(seed);
  Graph *graph = build_graph(arena);
  build_node(graph, "Abs", "f32[T,4]", "", 1);
  build_node(graph, "Neg", "f32[T,4]", "", 1);
  build_node(graph, "Add", "f32=1,-2,3,4 f32(1)", "", 1);
  for (int i = 0; i < 3; i++) infer_node(graph, graph->nodes[i]);
  while (graph->n_nodes < NODES) add_node(graph);
  for (int i = 0; i < 4; i++) build_output(graph, graph->nodes[graph->n_nodes - 1 - i * 2]->outputs[0]);
  return graph;
}

static void run(Arena *arena, Graph *graph, Tensor **outputs) {
  const int64_t symbols[] = {3, 1}, shape[] = {3, 4};
  const Tensor *inputs[INPUTS];
  assert_int_equal(graph->n_inputs, INPUTS);
  for (int k = 0; k < INPUTS; k++) {
    Tensor *input = tensor_new(arena, RNNCC_F32, 2, shape);
    for (int64_t i = 0; i < 12; i++) tensor_set_int(input, i, (i * 5 + k * 3) % 7 - 3);
    inputs[k] = input;
  }
  const char *wrong = reference_run(arena, graph, inputs, outputs, symbols);
  if (wrong) fail_msg("%s", wrong);
}

static void expect_equal(unsigned seed, int output, const Tensor *before, const Tensor *after) {
  bool same = before->rank == after->rank && tensor_count(before) == tensor_count(after);
  for (int64_t i = 0; same && i < tensor_count(before); i++) same = tensor_get(before, i) == tensor_get(after, i);
  if (!same) fail_msg("graph %u: output %d differs", seed, output);
}

static void check_graph(unsigned seed) {
  Arena *arena = arena_new();
  Tensor *before[4], *after[4];
  Graph *original = random_graph(arena, seed), *changed = random_graph(arena, seed);
  run(arena, original, before);
  const char *names[4];
  for (int i = 0; i < 4; i++) names[i] = changed->outputs[i]->name;
  simplify(changed);
  verify(changed);
  fuse_epilogue(changed);
  verify(changed);
  alias_views(changed);
  verify(changed);
  assert_true(changed->n_nodes <= 2 * NODES);
  run(arena, changed, after);
  for (int i = 0; i < 4; i++) {
    assert_string_equal(changed->outputs[i]->name, names[i]);
    expect_equal(seed, i, before[i], after[i]);
  }
  arena_free(arena);
}

static void random_graphs_keep_their_meaning(void **state) {
  (void)state;
  for (unsigned seed = 0; seed < GRAPHS; seed++) check_graph(seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs_keep_their_meaning)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
