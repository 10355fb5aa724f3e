/* SPDX-License-Identifier: MIT */
/* match_activations: the forms in which exporters write activations, and graphs that only look like them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

static Graph *built(const Steps steps) { return built_behind("f32[3,8]", steps); }

static Graph *matched(Graph *graph) {
  match_activations(graph);
  verify(graph);
  return graph;
}

static double element(int64_t i) { return (double)(i - 12) * 0.4; }
static const Tensor *run(Graph *graph) { return run_on(graph, element); }

/* |x| <= 5; the op and its arithmetic differ by a few f32 roundings, each at most 2^-24 of at most 48. */
static void expect_close(const Tensor *a, const Tensor *b) { expect_within(a, b, 6 * 48 * 0x1p-24); }

static void arithmetic_becomes_one_op(void **state) {
  (void)state;
  static const struct {
    const char *op;
    Steps steps;
  } cases[] = {
      {"Mul", {{"Pow", "@0 f32(2)", ""}}},
      {"Mul", {{"Pow", "@0 i64(2)", ""}}},
      {"Swish", {{"Sigmoid", "@0", ""}, {"Mul", "@0 @1", ""}}},
      {"Swish", {{"Sigmoid", "@0", ""}, {"Mul", "@1 @0", ""}}},
      {"Mish", {{"Softplus", "@0", ""}, {"Tanh", "@1", ""}, {"Mul", "@0 @2", ""}}},
      {"HardSwish", {{"HardSigmoid", "@0", "alpha=0.16666667 beta=0.5"}, {"Mul", "@0 @1", ""}}},
      {"HardSigmoid", {{"Add", "@0 f32(3)", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Div", "@2 f32(6)", ""}}},
      {"HardSigmoid", {{"Add", "f32(3) @0", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Mul", "@2 f32(0.16666667)", ""}}},
      {"HardSwish",
       {{"Add", "@0 f32(3)", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Mul", "@0 @2", ""}, {"Div", "@3 f32(6)", ""}}},
      {"HardSwish",
       {{"Add", "@0 f32(3)", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Div", "@2 f32(6)", ""}, {"Mul", "@3 @0", ""}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const Tensor *before = run(built(cases[i].steps));
    Graph *graph = matched(built(cases[i].steps));
    if (graph->n_nodes != 2) fail_msg("case %zu: %d nodes", i, graph->n_nodes);
    assert_string_equal(graph->nodes[1]->op->name, cases[i].op);
    expect_close(before, run(graph));
  }
}

static void what_only_looks_alike_stays(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Sigmoid", "@0", ""}, {"Relu", "@0", ""}, {"Mul", "@1 @2", ""}},
      {{"Sigmoid", "@0", ""}, {"Mul", "@0 @1", ""}, {"Add", "@1 @2", ""}}, /* the gate is read twice */
      {{"HardSigmoid", "@0", "alpha=0.2 beta=0.5"}, {"Mul", "@0 @1", ""}},
      {{"Add", "@0 f32(3)", ""}, {"Clip", "@1 f32(0) f32(5)", ""}, {"Div", "@2 f32(6)", ""}},
      {{"Add", "@0 f32(2)", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Div", "@2 f32(6)", ""}},
      {{"Add", "@0 f32(3)", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Div", "f32(6) @2", ""}},
      {{"Pow", "@0 f32(2.0000002)", ""}},
      {{"Pow", "@0 i64(3)", ""}},
      {{"Add", "@0 f32[1,1,1]!", ""}, {"Clip", "@1 f32(0) f32(6)", ""}, {"Div", "@2 f32(6)", ""}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Graph *graph = built(cases[i]);
    int nodes = graph->n_nodes;
    if (matched(graph)->n_nodes != nodes) fail_msg("case %zu", i);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(arithmetic_becomes_one_op),
      TEST(what_only_looks_alike_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
