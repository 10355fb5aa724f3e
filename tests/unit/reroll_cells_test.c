/* SPDX-License-Identifier: MIT */
/* reroll_rnn on whole networks: cells that are written out, one copy a step, become one operator that computes the
 * same; what differs between steps, or is read elsewhere, keeps them apart. tests/graphs has how exporters write them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

enum { STEPS = 4, ROWS = 2, INPUTS = 3, HIDDEN = 4 };

/* What differs from step to step in a network that should not be rolled up. */
typedef enum Mistake { NO_MISTAKE, OTHER_BIAS, OTHER_WEIGHTS, OTHER_INPUT, READ_BETWEEN, READ_BESIDE } Mistake;

typedef struct Network {
  Graph *graph;
  Value *x, *h[STEPS], *c; /* h: by step */
  int direction;
  Mistake mistake;
} Network;

static Value *of(Network *network, const char *op, const char *inputs, const char *attributes, Value *a, Value *b) {
  Node *node = build_node(network->graph, op, inputs, attributes, 1);
  if (a) node->inputs[0] = a;
  if (b) node->inputs[1] = b;
  return node->outputs[0];
}

static Value *two(Network *network, const char *op, Value *a, Value *b) { return of(network, op, "_ _", "", a, b); }
static Value *one(Network *network, const char *op, Value *a) { return of(network, op, "_", "", a, NULL); }

/* Numbers between -1/2 and 1/2, the same for the same rows and columns. */
static Value *numbers(Network *network, int64_t rows, int64_t columns, double more) {
  const int64_t shape[] = {rows, columns};
  float *data = ARENA_ARRAY(arena, float, rows *columns);
  for (int64_t i = 0; i < rows * columns; i++)
    data[i] = (float)((double)((i * 37 + rows * 11 + columns) % 17 - 8) / 16 + more);
  return rows == 1 ? graph_constant(network->graph, "bias", RNNCC_F32, 1, &columns, data)
                   : graph_constant(network->graph, "weights", RNNCC_F32, 2, shape, data);
}

/* [ROWS, columns]: x_t W + h R + b. */
static Value *sums(Network *network, int step, Value *x, Value *h, int64_t columns) {
  double bias = network->mistake == OTHER_BIAS && step == 1, weights = network->mistake == OTHER_WEIGHTS && step == 2;
  Value *of_x = two(network, "MatMul", x, numbers(network, INPUTS, columns, 0));
  Value *of_h = two(network, "MatMul", h, numbers(network, HIDDEN, columns, weights / 8));
  Value *sum = two(network, "Add", of_x, of_h);
  return two(network, "Add", sum, numbers(network, 1, columns, bias / 8));
}

static Value *columns(Network *network, Value *value, int from) {
  const char *attributes = arena_format(arena, "axes=[1] starts=[%d] ends=[%d]", from * HIDDEN, (from + 1) * HIDDEN);
  return of(network, "Slice", "_", attributes, value, NULL);
}

typedef Value *Cell(Network *network, int step, Value *x, Value *h);

static Value *rnn_cell(Network *network, int step, Value *x, Value *h) {
  return one(network, "Tanh", sums(network, step, x, h, HIDDEN));
}

static Value *lstm_cell(Network *network, int step, Value *x, Value *h) {
  Value *all = sums(network, step, x, h, 4 * HIDDEN), *gate[4];
  for (int g = 0; g < 4; g++) gate[g] = one(network, g == 3 ? "Tanh" : "Sigmoid", columns(network, all, g));
  Value *kept = two(network, "Mul", gate[0], network->c), *new = two(network, "Mul", gate[1], gate[3]);
  network->c = two(network, "Add", kept, new);
  if (network->mistake == READ_BESIDE) /* no part of the cell, and the next value */
    build_output(network->graph, one(network, "Abs", one(network, "Neg", x)));
  return two(network, "Mul", gate[2], one(network, "Tanh", network->c));
}

/* The candidate's product with h is of r * h. */
static Value *gru_cell(Network *network, int step, Value *x, Value *h) {
  Value *all = sums(network, step, x, h, 2 * HIDDEN);
  Value *z = one(network, "Sigmoid", columns(network, all, 0)), *r = one(network, "Sigmoid", columns(network, all, 1));
  Value *candidate = one(network, "Tanh", sums(network, step, x, two(network, "Mul", r, h), HIDDEN));
  Value *kept = two(network, "Mul", z, h);
  Value *rest = of(network, "Sub", "f32(1) _", "", NULL, z);
  return two(network, "Add", kept, two(network, "Mul", rest, candidate));
}

/* x[STEPS, ROWS, INPUTS] -> [STEPS, ROWS, HIDDEN], the steps in the order in which they run. */
static Network unrolled(Cell *cell, int direction, Mistake mistake) {
  Network network = {.graph = build_graph(arena), .direction = direction, .mistake = mistake};
  network.x = of(&network, "Neg", "f32[4,2,3]", "", NULL, NULL);
  Value *first = of(&network, "Gather", "_ i64(1)", "axis=0", network.x, NULL),
        *other = one(&network, "Abs", network.x);
  Value *h = network.c = one(&network, "Abs", two(&network, "MatMul", first, numbers(&network, INPUTS, HIDDEN, 0)));
  for (int step = 0; step < STEPS; step++) {
    int at = direction > 0 ? step : STEPS - 1 - step;
    Value *from = mistake == OTHER_INPUT && step == 2 ? other : network.x;
    Value *x = of(&network, "Gather", arena_format(arena, "_ i64(%d)", at), "axis=0", from, NULL);
    network.h[step] = h = cell(&network, step, x, h);
    if (mistake == READ_BETWEEN && step == 1) build_output(network.graph, one(&network, "Neg", network.c));
  }
  Node *stack = build_node(network.graph, "Concat", "_ _ _ _", "axis=0", 1);
  for (int step = 0; step < STEPS; step++)
    stack->inputs[step] = of(&network, "Unsqueeze", "_", "axes=[0]", network.h[step], NULL);
  build_output(network.graph, stack->outputs[0]);
  sort_nodes(network.graph);
  infer_shapes(network.graph);
  return network;
}

static double spread(int64_t i) { return (double)(i * 29 % 31 - 15) / 8; }

/* Of the last output. */
static const Tensor *values_of(Graph *graph) {
  Tensor *input = new_input(graph), *outputs[STEPS + 1];
  const Tensor *given = input;
  for (int64_t i = 0; i < tensor_count(input); i++) tensor_set(input, i, spread(i));
  const char *wrong = reference_run(arena, graph, &given, outputs, STEPS_SYMBOLS);
  if (wrong) fail_msg("%s", wrong);
  return outputs[graph->n_outputs - 1];
}

static Graph *rerolled(Graph *graph) {
  reroll_rnn(graph);
  infer_shapes(graph);
  verify(graph);
  return graph;
}

/* The sums are added in another order. */
static void expect_same_values(Cell *cell, int direction, Mistake mistake, Graph *after) {
  Network before = unrolled(cell, direction, mistake);
  expect_within(values_of(before.graph), values_of(after), 0x1p-20);
}

static void expect_rolled_up(Cell *cell, const char *op) {
  for (int direction = -1; direction <= 1; direction += 2) {
    Graph *graph = rerolled(unrolled(cell, direction, NO_MISTAKE).graph);
    assert_int_equal(count_nodes(graph, op), 1);
    assert_int_equal(count_nodes(graph, "MatMul"), 1); /* of the initial state */
    assert_int_equal(count_nodes(graph, "Tanh") + count_nodes(graph, "Sigmoid"), 0);
    if (direction > 0) assert_int_equal(count_nodes(graph, "Concat"), 0); /* its Y is what the graph put together */
    expect_same_values(cell, direction, NO_MISTAKE, graph);
  }
}

static void steps_of_a_cell_become_one_operator(void **state) {
  (void)state;
  expect_rolled_up(rnn_cell, "RNN");
  expect_rolled_up(lstm_cell, "LSTM");
  expect_rolled_up(gru_cell, "GRU");
}

static void steps_that_differ_stay_apart(void **state) {
  (void)state;
  static Cell *const cells[] = {rnn_cell, lstm_cell, gru_cell};
  static const char *const ops[] = {"RNN", "LSTM", "GRU"};
  for (int cell = 0; cell < 3; cell++)
    for (Mistake mistake = OTHER_BIAS; mistake <= OTHER_INPUT; mistake++) {
      Graph *graph = rerolled(unrolled(cells[cell], 1, mistake).graph);
      /* Steps of another input are copied together; a step of other numbers is no part of a row. */
      bool whole = count_nodes(graph, ops[cell]) == 1 && count_nodes(graph, "Tanh") == 0;
      if (whole != (mistake == OTHER_INPUT)) fail_msg("%s, mistake %d", ops[cell], mistake);
      expect_same_values(cells[cell], 1, mistake, graph);
    }
}

static void a_cell_s_inner_state_that_is_read_stays_there(void **state) {
  (void)state;
  Graph *graph = rerolled(unrolled(lstm_cell, 1, READ_BETWEEN).graph);
  assert_true(count_nodes(graph, "LSTM") != 1);
  expect_same_values(lstm_cell, 1, READ_BETWEEN, graph);
}

static void what_is_computed_beside_a_cell_keeps_no_steps_apart(void **state) {
  (void)state;
  Graph *graph = rerolled(unrolled(lstm_cell, 1, READ_BESIDE).graph);
  assert_int_equal(count_nodes(graph, "LSTM"), 1);
  assert_int_equal(count_nodes(graph, "Sigmoid"), 0);
  expect_same_values(lstm_cell, 1, READ_BESIDE, graph);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(steps_of_a_cell_become_one_operator),
      TEST(steps_that_differ_stay_apart),
      TEST(a_cell_s_inner_state_that_is_read_stays_there),
      TEST(what_is_computed_beside_a_cell_keeps_no_steps_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
