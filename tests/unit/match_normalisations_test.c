/* SPDX-License-Identifier: MIT */
/* match_normalisations: the forms in which exporters write normalisations of rows, and what only looks like them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

static Graph *built(const Steps steps) { return built_behind("f32[3,2,8]", steps); }

static Graph *matched(Graph *graph) {
  match_activations(graph);
  match_normalisations(graph);
  verify(graph);
  return graph;
}

static double element(int64_t i) { return sin((double)i) + 0.5; }
static const Tensor *run(Graph *graph) { return run_on(graph, element); }

/* Normal values are below sqrt(16), scales up to 8: a dozen f32 roundings of 32, and as many that the deviation, above
 * 0.3, magnifies. */
static void expect_close(const Tensor *a, const Tensor *b) { expect_within(a, b, 12 * 4 * 32 * 0x1p-24); }

#define CENTRED {"ReduceMean", "@0 i64=-1", ""}, {"Sub", "@0 @1", ""}
#define DEVIATION                                                                                                      \
  {"Pow", "@2 f32(2)", ""}, {"ReduceMean", "@3 i64=-1", ""}, {"Add", "@4 f32(0.001)", ""}, {"Sqrt", "@5", ""}
#define LAYER CENTRED, DEVIATION, {"Div", "@2 @6", ""}
#define SQUARE {"Pow", "@0 f32(2)", ""}, {"ReduceMean", "@1 i64=-1", ""}, {"Add", "@2 f32(0.001)", ""}

static void arithmetic_becomes_one_op(void **state) {
  (void)state;
  static const struct {
    const char *op;
    int inputs;
    Steps steps;
  } cases[] = {
      {"LayerNormalization", 3, {LAYER, {"Mul", "@7 f32[8]!", ""}, {"Add", "@8 f32[8]!", ""}}},
      {"LayerNormalization", 3, {LAYER, {"Mul", "f32[8]! @7", ""}, {"Add", "f32[1,1,8]! @8", ""}}},
      {"LayerNormalization", 2, {LAYER, {"Mul", "@7 f32(2)", ""}}},
      {"LayerNormalization", 3, {LAYER, {"Add", "@7 f32[8]!", ""}}},
      {"LayerNormalization", 2, {LAYER}},
      /* the difference twice */
      {"LayerNormalization",
       2,
       {{"ReduceMean", "@0 i64=2", ""},
        {"Sub", "@0 @1", ""},
        {"Sub", "@0 @1", ""},
        {"Mul", "@2 @2", ""},
        {"ReduceMean", "@4 i64=2", ""},
        {"Add", "f32(0.001) @5", ""},
        {"Sqrt", "@6", ""},
        {"Div", "@3 @7", ""}}},
      /* rows of two axes */
      {"LayerNormalization",
       2,
       {{"ReduceMean", "@0 i64=-1,-2", ""},
        {"Sub", "@0 @1", ""},
        {"Mul", "@2 @2", ""},
        {"ReduceMean", "@3 i64=1,2", ""},
        {"Add", "@4 f32(0.001)", ""},
        {"Sqrt", "@5", ""},
        {"Div", "@2 @6", ""},
        {"Mul", "@7 f32[2,8]!", ""}}},
      {"RMSNormalization", 2, {SQUARE, {"Sqrt", "@3", ""}, {"Div", "@0 @4", ""}, {"Mul", "@5 f32[8]!", ""}}},
      {"RMSNormalization",
       2,
       {SQUARE, {"Sqrt", "@3", ""}, {"Reciprocal", "@4", ""}, {"Mul", "@0 @5", ""}, {"Mul", "f32[8]! @6", ""}}},
      {"RMSNormalization", 2, {SQUARE, {"Sqrt", "@3", ""}, {"Div", "f32(1) @4", ""}, {"Mul", "@5 @0", ""}}},
      {"RMSNormalization", 2, {SQUARE, {"Pow", "@3 f32(-0.5)", ""}, {"Mul", "@0 @4", ""}}},
      {"RMSNormalization", 2, {SQUARE, {"Pow", "@3 f32(0.5)", ""}, {"Div", "@0 @4", ""}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const Tensor *before = run(built(cases[i].steps));
    Graph *graph = matched(built(cases[i].steps));
    if (graph->n_nodes != 2) fail_msg("case %zu: %d nodes", i, graph->n_nodes);
    assert_string_equal(graph->nodes[1]->op->name, cases[i].op);
    assert_int_equal(graph->nodes[1]->n_inputs, cases[i].inputs);
    expect_close(before, run(graph));
  }
}

/* How many nodes stay, x's among them, and the op of the last normalisation, NULL if there is none. */
static const struct {
  const char *op;
  int nodes;
  Steps steps;
} ALIKE[] = {
    /* means of other axes, or that vanish */
    {NULL,
     8,
     {{"ReduceMean", "@0 i64=1", ""},
      {"Sub", "@0 @1", ""},
      {"Mul", "@2 @2", ""},
      {"ReduceMean", "@3 i64=1", ""},
      {"Add", "@4 f32(0.001)", ""},
      {"Sqrt", "@5", ""},
      {"Div", "@2 @6", ""}}},
    {NULL,
     6,
     {{"Mul", "@0 @0", ""},
      {"ReduceMean", "@1 i64=0,2", ""},
      {"Add", "@2 f32(0.001)", ""},
      {"Sqrt", "@3", ""},
      {"Div", "@0 @4", ""}}},
    {NULL,
     6,
     {{"Mul", "@0 @0", ""},
      {"ReduceSum", "@1 i64=-1", ""},
      {"Add", "@2 f32(0.001)", ""},
      {"Sqrt", "@3", ""},
      {"Div", "@0 @4", ""}}},
    /* no square, no number, below 0, another root, upside down */
    {NULL,
     6,
     {{"Mul", "@0 f32[8]!", ""},
      {"ReduceMean", "@1 i64=-1", ""},
      {"Add", "@2 f32(9)", ""},
      {"Sqrt", "@3", ""},
      {"Div", "@0 @4", ""}}},
    {NULL,
     6,
     {{"Mul", "@0 @0", ""},
      {"ReduceMean", "@1 i64=-1", ""},
      {"Add", "@2 f32[3,2,1]!", ""},
      {"Sqrt", "@3", ""},
      {"Div", "@0 @4", ""}}},
    {NULL,
     6,
     {{"Mul", "@0 @0", ""},
      {"ReduceMean", "@1 i64=-1", ""},
      {"Add", "@2 f32(-0.001)", ""},
      {"Sqrt", "@3", ""},
      {"Div", "@0 @4", ""}}},
    {NULL, 6, {SQUARE, {"Pow", "@3 f32(0.25)", ""}, {"Div", "@0 @4", ""}}},
    {NULL, 6, {SQUARE, {"Pow", "@3 f32(-0.25)", ""}, {"Mul", "@0 @4", ""}}},
    {NULL, 6, {SQUARE, {"Sqrt", "@3", ""}, {"Div", "@4 @0", ""}}},
    {NULL, 7, {SQUARE, {"Sqrt", "@3", ""}, {"Div", "f32(2) @4", ""}, {"Mul", "@0 @5", ""}}},
    /* a quotient of something else; means of something else make RMS normalisations of the difference */
    {NULL, 7, {SQUARE, {"Sqrt", "@3", ""}, {"Relu", "@0", ""}, {"Div", "@5 @4", ""}}},
    {"RMSNormalization",
     5,
     {{"Relu", "@0", ""},
      {"ReduceMean", "@1 i64=-1", ""},
      {"Sub", "@0 @2", ""},
      {"Pow", "@3 f32(2)", ""},
      {"ReduceMean", "@4 i64=-1", ""},
      {"Add", "@5 f32(0.001)", ""},
      {"Sqrt", "@6", ""},
      {"Div", "@3 @7", ""}}},
    {"RMSNormalization",
     4,
     {{"ReduceMean", "@0 i64=-1,-2", ""}, {"Sub", "@0 @1", ""}, DEVIATION, {"Div", "@2 @6", ""}}},
    /* the difference, the mean, the deviation, the root or the square is read elsewhere */
    {"RMSNormalization", 5, {LAYER, {"Add", "@7 @2", ""}}},
    {"RMSNormalization", 5, {LAYER, {"Add", "@7 @1", ""}}},
    {NULL, 9, {LAYER, {"Add", "@7 @6", ""}}},
    {NULL, 9, {LAYER, {"Add", "@7 @5", ""}}},
    {NULL, 9, {LAYER, {"Add", "@7 @4", ""}}},
    {NULL, 9, {LAYER, {"Add", "@7 @3", ""}}},
    /* what follows is no parameter of a row */
    {"LayerNormalization", 3, {LAYER, {"Mul", "@7 f32[2,8]!", ""}}},
    {"LayerNormalization", 3, {LAYER, {"Mul", "@7 @7", ""}}},
    {"LayerNormalization", 3, {LAYER, {"Mul", "@7 f32[1,1,1,8]!", ""}}},
    {"RMSNormalization", 3, {SQUARE, {"Sqrt", "@3", ""}, {"Div", "@0 @4", ""}, {"Add", "@5 f32[8]!", ""}}},
};

static void what_only_looks_alike_stays(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof ALIKE / sizeof *ALIKE; i++) {
    const Tensor *before = run(built(ALIKE[i].steps));
    Graph *graph = matched(built(ALIKE[i].steps));
    if (graph->n_nodes != ALIKE[i].nodes) fail_msg("case %zu: %d nodes", i, graph->n_nodes);
    bool there = ALIKE[i].op && producer_named(graph, ALIKE[i].op);
    int normalisations = count_nodes(graph, "LayerNormalization") + count_nodes(graph, "RMSNormalization");
    if (there != (ALIKE[i].op != NULL) || normalisations != there) fail_msg("case %zu", i);
    expect_close(before, run(graph));
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
