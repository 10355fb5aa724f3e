/* SPDX-License-Identifier: MIT */
/* match_gelu: the forms in which exporters write Gelu and Swish, and what only looks like them. */
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
  match_gelu(graph);
  verify(graph);
  return graph;
}

static double element(int64_t i) { return (double)(i - 12) * 0.4; }
static const Tensor *run(Graph *graph) { return run_on(graph, element); }

/* |x| <= 5, whose cube is 125: the op and its arithmetic differ by a few f32 roundings of a gate's argument, which is
 * at most 10, where its slope is at most 1, times x; constants of seven digits differ by as much as one more. */
static void expect_close(const Tensor *a, const Tensor *b) { expect_within(a, b, 8 * 50 * 0x1p-24); }

#define ERF(op, inputs) {op, inputs, ""}, {"Erf", "@1", ""}, {"Add", "@2 f32(1)", ""}
#define CUBE {"Mul", "@0 @0", ""}, {"Mul", "@1 @0", ""}, {"Mul", "@2 f32(0.044715)", ""}
#define TANH CUBE, {"Add", "@0 @3", ""}, {"Mul", "@4 f32(0.7978846)", ""}, {"Tanh", "@5", ""}, {"Add", "@6 f32(1)", ""}

static void arithmetic_becomes_one_op(void **state) {
  (void)state;
  static const struct {
    const char *op;
    Steps steps;
  } cases[] = {
      {"Gelu", {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.5)", ""}}},
      {"Gelu", {ERF("Mul", "@0 f32(0.70710677)"), {"Mul", "@0 f32(0.5)", ""}, {"Mul", "@4 @3", ""}}},
      {"Gelu", {ERF("Mul", "f32(0.70710677) @0"), {"Mul", "@3 f32(0.5)", ""}, {"Mul", "@0 @4", ""}}},
      {"Gelu", {ERF("Div", "@0 f32(1.4142135)"), {"Div", "@3 f32(2)", ""}, {"Mul", "@4 @0", ""}}},
      {"Gelu", {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Div", "@4 f32(2)", ""}}},
      {"Gelu", {TANH, {"Mul", "@0 f32(0.5)", ""}, {"Mul", "@8 @7", ""}}},
      {"Gelu",
       {{"Pow", "@0 f32(3)", ""},
        {"Mul", "f32(0.044715) @1", ""},
        {"Add", "@2 @0", ""},
        {"Mul", "f32(0.7978846) @3", ""},
        {"Tanh", "@4", ""},
        {"Add", "f32(1) @5", ""},
        {"Mul", "@0 @6", ""},
        {"Mul", "f32(0.5) @7", ""}}},
      {"Gelu",
       {{"Mul", "@0 f32(0.7978846)", ""},
        {"Mul", "@0 f32(0.044715)", ""},
        {"Mul", "@2 @0", ""},
        {"Add", "@3 f32(1)", ""},
        {"Mul", "@1 @4", ""},
        {"Tanh", "@5", ""},
        {"Add", "@6 f32(1)", ""},
        {"Mul", "@0 f32(0.5)", ""},
        {"Mul", "@8 @7", ""}}},
      {"Swish", {{"Mul", "@0 f32(1.702)", ""}, {"Sigmoid", "@1", ""}, {"Mul", "@0 @2", ""}}},
      {"Swish", {{"Div", "@0 f32(0.5)", ""}, {"Sigmoid", "@1", ""}, {"Mul", "@2 @0", ""}}},
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
      /* other numbers */
      {ERF("Div", "@0 f32(1.4)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.5)", ""}},
      {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.6)", ""}},
      {ERF("Div", "f32(1.4142135) @0"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.5)", ""}},
      {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Div", "f32(0.5) @4", ""}},
      {{"Div", "@0 f32(1.4142135)", ""},
       {"Erf", "@1", ""},
       {"Add", "@2 f32(2)", ""},
       {"Mul", "@0 @3", ""},
       {"Mul", "@4 f32(0.5)", ""}},
      {{"Mul", "@0 f32(0.70710677)", ""},
       {"Add", "@1 f32(0.1)", ""},
       {"Erf", "@2", ""},
       {"Add", "@3 f32(1)", ""},
       {"Mul", "@0 @4", ""},
       {"Mul", "@5 f32(0.5)", ""}},
      {{"Mul", "@0 @0", ""},
       {"Mul", "@1 @0", ""},
       {"Mul", "@2 f32(0.05)", ""},
       {"Add", "@0 @3", ""},
       {"Mul", "@4 f32(0.7978846)", ""},
       {"Tanh", "@5", ""},
       {"Add", "@6 f32(1)", ""},
       {"Mul", "@0 f32(0.5)", ""},
       {"Mul", "@8 @7", ""}},
      {{"Mul", "@0 @0", ""},
       {"Mul", "@1 f32(0.70710677)", ""},
       {"Erf", "@2", ""},
       {"Add", "@3 f32(1)", ""},
       {"Mul", "@0 @4", ""},
       {"Mul", "@5 f32(0.5)", ""}},
      /* another function, another x, one x too many */
      {{"Div", "@0 f32(1.4142135)", ""},
       {"Sin", "@1", ""},
       {"Add", "@2 f32(1)", ""},
       {"Mul", "@0 @3", ""},
       {"Mul", "@4 f32(0.5)", ""}},
      {ERF("Div", "@0 f32(1.4142135)"), {"Relu", "@0", ""}, {"Mul", "@4 @3", ""}, {"Mul", "@5 f32(0.5)", ""}},
      {{"Mul", "@0 f32(1.702)", ""}, {"Sigmoid", "@1", ""}, {"Relu", "@0", ""}, {"Mul", "@3 @2", ""}},
      {{"Mul", "@0 f32(1.702)", ""}, {"Add", "@1 f32(1)", ""}, {"Sigmoid", "@2", ""}, {"Mul", "@0 @3", ""}},
      /* the gate has another reader */
      {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.5)", ""}, {"Add", "@5 @3", ""}},
      {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.5)", ""}, {"Add", "@5 @2", ""}},
      {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32(0.5)", ""}, {"Add", "@5 @1", ""}},
      /* the result has more axes than x, or the factor is no number */
      {ERF("Div", "@0 f32(1.4142135)"),
       {"Mul", "@0 @3", ""},
       {"Mul", "@4 f32[1,1,1]!", ""},
       {"Mul", "@5 f32(0.5)", ""}},
      {ERF("Div", "@0 f32(1.4142135)"), {"Mul", "@0 @3", ""}, {"Mul", "@4 f32[8]!", ""}, {"Mul", "@5 f32(0.5)", ""}},
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
