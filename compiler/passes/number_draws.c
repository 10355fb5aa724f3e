/* SPDX-License-Identifier: MIT */
/*
 * Which draw of random numbers a node makes. Each node gets two more inputs: a key of its own, and the number of the
 * draw. That is a state, which counts the context's runs: a run draws other numbers than the one before, and a context
 * whose states are reset draws the first ones again. In a body of Loop or Scan it is mixed with the iteration's number.
 *
 * Because it is a value like any other, no pass takes two draws for the same, or one for a constant.
 */
#include <string.h>

#include "ir/bodies.h"
#include "ir/op.h"
#include "passes.h"
#include "support/list.h"

/* Odd, with digits that look random (Knuth, MMIX): outer draws and iterations give different numbers. */
#define MIX INT64_C(6364136223846793005)

/* ---- keys ---- */

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection. */
static uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Of equal `seed`s equal, as with ONNX Runtime; else of the node's place among those that draw, and of --seed. */
static int64_t key_of(const Graph *graph, const Node *node, uint64_t place) {
  uint64_t seed = graph->config ? graph->config->seed : 0, bits;
  if (!node_has(node, ATTR_seed)) return (int64_t)mixed(mixed(seed + 1) + place);
  double given = (float)node_float(node, ATTR_seed);
  memcpy(&bits, &given, sizeof bits);
  return (int64_t)mixed(bits);
}

/* ---- numbers ---- */

static Value *integer(Graph *graph, int64_t number) {
  const void *data = arena_copy(graph->arena, &number, sizeof number);
  return graph_constant(graph, "draw", RNNCC_I64, 0, NULL, data);
}

static Value *computed(Graph *graph, OpKind op, Value *a, Value *b, const char *name, Location where) {
  Node *node = graph_node(graph, op_info(op), name, 2, 1);
  node->where = where;
  node->inputs[0] = a;
  node->inputs[1] = b;
  graph_set_output(node, 0, graph_value(graph, name, where));
  return node->outputs[0];
}

static Value *new_input(Graph *graph, const char *name, Location where) {
  Value *value = graph_value(graph, name, where);
  value->is_input = true;
  return value;
}

/* How many runs the context has made. */
static Value *count_runs(Graph *graph) {
  const Location where = LOCATION_FILE(graph->file);
  const char *name = graph_new_name(graph, "random_run");
  Value *run = new_input(graph, name, where);
  run->dtype = RNNCC_I64;
  run->rank = 0;
  Value *next = computed(graph, OP_Add, run, integer(graph, 1), arena_format(graph->arena, "%s_next", name), where);
  *LIST_APPEND(graph->arena, graph->states, graph->n_states) =
      (State){.input = run, .output = next, .batch_axis = -1, .counts_runs = true};
  return run;
}

/* ---- bodies ---- */

/* The captured value, as the body sees it. */
static Value *stand_in(Graph *body, const Value *outer) {
  Value *value = new_input(body, outer->name, outer->where);
  *LIST_APPEND(body->arena, body->inputs, body->n_inputs) = value;
  return value;
}

/* A scan has no number of its iteration: it carries one, before all that it carries. */
static Value *count_iterations(Graph *graph, Node *node, Graph *body) {
  Value **inputs = ARENA_ARRAY(graph->arena, Value *, node->n_inputs + 1), **outputs = node->outputs;
  memcpy(inputs + 1, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
  inputs[0] = integer(graph, 0);
  node->inputs = inputs;
  node->n_inputs++;
  node->outputs = ARENA_ARRAY(graph->arena, Value *, ++node->n_outputs);
  for (int i = 1; i < node->n_outputs; i++)
    if (outputs[i - 1]) graph_set_output(node, i, outputs[i - 1]);

  Value **formal = ARENA_ARRAY(graph->arena, Value *, body->n_inputs + 1), **results;
  memcpy(formal + 1, body->inputs, (size_t)body->n_inputs * sizeof *formal);
  formal[0] = new_input(body, "iteration", node->where);
  body->inputs = formal;
  body->n_inputs++;
  results = ARENA_ARRAY(graph->arena, Value *, body->n_outputs + 1);
  memcpy(results + 1, body->outputs, (size_t)body->n_outputs * sizeof *results);
  results[0] = computed(body, OP_Add, formal[0], integer(body, 1), "iteration", node->where);
  body->outputs = results;
  body->n_outputs++;
  return formal[0];
}

/* The iteration's number; NULL: there is none, or the body lacks it, which infer_shapes tells. */
static Value *iteration_of(Graph *graph, Node *node, Graph *body) {
  if (is_op(node, OP_Scan)) return count_iterations(graph, node, body);
  return is_op(node, OP_Loop) && body->n_inputs > node->n_captures ? body->inputs[0] : NULL;
}

static void number_nodes(Graph *graph, Value *draw, uint64_t *place);

static void number_body(Graph *body, Value *draw, Value *iteration, const Node *node, uint64_t *place) {
  if (!graph_draws(body)) return;
  if (iteration) {
    Node **nodes;
    int n = graph_take_nodes(body, &nodes);
    draw = computed(body, OP_Mul, draw, integer(body, MIX), "draw", node->where);
    draw = computed(body, OP_Add, draw, iteration, "draw", node->where);
    for (int i = 0; i < n; i++) graph_append(body, nodes[i]);
  }
  number_nodes(body, draw, place);
}

static void number_bodies(Graph *graph, Node *node, Value *draw, uint64_t *place) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  bool any = false;
  for (int b = 0; b < count; b++) any |= graph_draws(bodies[b]->graph);
  if (!any) return;
  Value *iteration = iteration_of(graph, node, bodies[0]->graph);
  *LIST_APPEND(graph->arena, node->inputs, node->n_inputs) = draw;
  node->n_captures++;
  for (int b = 0; b < count; b++)
    number_body(bodies[b]->graph, stand_in(bodies[b]->graph, draw), iteration, node, place);
}

static void number_node(Graph *graph, Node *node, Value *draw, uint64_t place) {
  int own = node->op->max_inputs;
  Value **inputs = ARENA_ARRAY(graph->arena, Value *, own + N_DRAW_INPUTS);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
  inputs[own] = draw;
  inputs[own + 1] = integer(graph, key_of(graph, node, place));
  node->inputs = inputs;
  node->n_inputs = own + N_DRAW_INPUTS;
}

static void number_nodes(Graph *graph, Value *draw, uint64_t *place) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (node_draws(graph, node))
      number_node(graph, node, draw, (*place)++);
    else
      number_bodies(graph, node, draw, place);
  }
}

/* needs: verify's structure. keeps: all else; no node of ops.def has more inputs than its row but those that draw.
 * Before infer_shapes, which may copy bodies. */
void number_draws(Graph *graph) {
  uint64_t place = 0;
  if (graph->outer || !graph_draws(graph)) return;
  number_nodes(graph, count_runs(graph), &place);
  graph_renumber(graph);
}
