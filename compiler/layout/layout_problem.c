/* SPDX-License-Identifier: MIT */
#include "layout/layout_problem.h"

#include <math.h>

#include "layout/layout.h"
#include "layout/layout_costs.h"

typedef struct Builder {
  LayoutProblem *problem;
  const LayoutSet *possible;           /* by node id */
  int *node_variable, *value_variable; /* by id; -1: none */
  unsigned *wanted;                    /* by value id: the layouts that readers may want */
  bool *row_major_too;                 /* by value id: a reader always wants row-major */
} Builder;

static bool contains(unsigned layouts, Layout layout) { return layouts >> layout & 1; }

bool is_wide_alternative(const NodeLayouts *layouts, int alternative) {
  return layouts->layout[alternative].reads == LAYOUT_WIDE || layouts->layout[alternative].writes == LAYOUT_WIDE;
}

const double layout_wide_margin = 1.03;

/* Constants are packed by the family. */
static bool is_read(const Value *value) { return value && !value->data; }

/* ---- nodes ---- */

static Layout wants(const NodeLayouts *layouts, int alternative, int input) {
  return input_layout(layouts->node, layouts->layout[alternative], input);
}

/* The recorded alternative nearest to another: one that reads the same layout, else preferably one that is not wide.
 * -1: nothing is recorded. */
static int recorded_like(const NodeLayouts *layouts, int alternative) {
  int like = -1;
  for (int a = 0; a < layouts->n; a++) {
    if (!layouts->recorded[a]) continue;
    if (layouts->layout[a].reads == layouts->layout[alternative].reads) return a;
    if (like < 0 || !is_wide_alternative(layouts, a)) like = a;
  }
  return like;
}

/* Estimates are scaled by the ratio of measured to estimated time of a recorded alternative, so that both can be
 * compared. */
static void set_seconds(Graph *graph, NodeLayouts *layouts) {
  NodeSeconds seconds[MAX_NODE_LAYOUTS];
  for (int a = 0; a < layouts->n; a++) {
    seconds[a] = layout_node_seconds(graph, layouts->node, layouts->layout[a]);
    layouts->recorded[a] = seconds[a].recorded > 0;
  }
  for (int a = 0; a < layouts->n; a++) {
    int like = recorded_like(layouts, a);
    double scale = like < 0 ? 1 : seconds[like].recorded / seconds[like].estimated;
    layouts->seconds[a] = layouts->recorded[a] ? seconds[a].recorded : scale * seconds[a].estimated;
  }
}

static NodeLayouts layouts_of(Graph *graph, Node *node, LayoutSet possible) {
  NodeLayouts layouts = {.node = node};
  for (Layout reads = 0; reads < LAYOUTS; reads++)
    for (Layout writes = 0; writes < LAYOUTS; writes++)
      if (possible & LAYOUT_BIT(reads, writes)) layouts.layout[layouts.n++] = (NodeLayout){reads, writes};
  set_seconds(graph, &layouts);
  return layouts;
}

/* Is a wide alternative of any node faster, by the margin? If none is, no wide layout of the graph can be better. */
static bool wide_gains(const LayoutProblem *problem) {
  for (int v = 0; v < problem->n_nodes; v++) {
    const NodeLayouts *layouts = &problem->nodes[v];
    double narrow = INFINITY;
    for (int a = 0; a < layouts->n; a++)
      if (!is_wide_alternative(layouts, a)) narrow = fmin(narrow, layouts->seconds[a]);
    for (int a = 0; a < layouts->n; a++)
      if (is_wide_alternative(layouts, a) && layouts->seconds[a] * layout_wide_margin < narrow) return true;
  }
  return false;
}

static void drop_wide(NodeLayouts *layouts) {
  int kept = 0;
  for (int a = 0; a < layouts->n; a++) {
    if (is_wide_alternative(layouts, a)) continue;
    layouts->layout[kept] = layouts->layout[a];
    layouts->recorded[kept] = layouts->recorded[a];
    layouts->seconds[kept++] = layouts->seconds[a];
  }
  layouts->n = kept;
}

static void add_nodes(Builder *b) {
  LayoutProblem *problem = b->problem;
  Graph *graph = problem->graph;
  problem->nodes = ARENA_ARRAY(graph->arena, NodeLayouts, graph->n_nodes);
  for (int n = 0; n < graph->n_nodes; n++) {
    b->node_variable[n] = -1;
    if (!(b->possible[n] & LAYOUT_SET_WRITES_BLOCKED)) continue;
    NodeLayouts *layouts = &problem->nodes[problem->n_nodes++];
    *layouts = layouts_of(graph, graph->nodes[n], b->possible[n]);
    b->node_variable[n] = problem->n_nodes - 1;
  }
  problem->has_wide = wide_gains(problem);
  for (int v = 0; v < problem->n_nodes; v++) {
    NodeLayouts *layouts = &problem->nodes[v];
    if (!problem->has_wide) drop_wide(layouts);
    choices_add_variable(problem->choices, layouts->n, layouts->seconds);
  }
}

/* ---- values ---- */

static bool may_read_any(const Builder *b, int node) {
  return b->possible[node] & LAYOUT_BIT(LAYOUT_ANY, LAYOUT_ROW_MAJOR);
}

static void note_readers(Builder *b) {
  const Graph *graph = b->problem->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    const NodeLayouts *layouts = b->node_variable[n] < 0 ? NULL : &b->problem->nodes[b->node_variable[n]];
    for (int i = 0; i < node->n_inputs; i++) {
      if (!is_read(node->inputs[i])) continue;
      int id = node->inputs[i]->id;
      if (!layouts && !(i == 0 && may_read_any(b, n))) b->row_major_too[id] = true;
      for (int a = 0; layouts && a < layouts->n; a++) b->wanted[id] |= 1U << wants(layouts, a, i);
    }
  }
  for (int i = 0; i < graph->n_outputs; i++) b->row_major_too[graph->outputs[i]->id] = true;
  for (int i = 0; i < graph->n_states; i++) b->row_major_too[graph->states[i].output->id] = true;
}

static void add_alternative(const Builder *b, ValueLayouts *layouts, Layout made, unsigned exists) {
  const Graph *graph = b->problem->graph;
  const Value *value = layouts->value;
  double seconds = 0;
  for (Layout to = 0; to < LAYOUTS; to++)
    if (contains(exists, to) && to != made)
      seconds +=
          layout_transform_seconds(graph, value, layout_block(graph, value, made), layout_block(graph, value, to));
  layouts->made[layouts->n] = made;
  layouts->exists[layouts->n] = exists;
  layouts->seconds[layouts->n++] = seconds;
}

/* Only a row-major value is transformed to narrow; a blocked one is read blocked. */
static void add_alternatives(const Builder *b, ValueLayouts *layouts, Layout made) {
  int id = layouts->value->id;
  unsigned may = b->wanted[id] | 1U << made | (b->row_major_too[id] ? 1U << LAYOUT_ROW_MAJOR : 0);
  unsigned must = 1U << made | (b->row_major_too[id] ? 1U << LAYOUT_ROW_MAJOR : 0);
  if (made != LAYOUT_ROW_MAJOR) may &= ~(1U << LAYOUT_NARROW);
  for (unsigned exists = 0; exists < 1U << LAYOUTS; exists++)
    if ((exists & must) == must && (exists & ~may) == 0) add_alternative(b, layouts, made, exists);
}

static bool producer_chooses(const Builder *b, const Value *value) {
  return value->producer && b->node_variable[value->producer->id] >= 0;
}

static bool producer_writes_wide(const Builder *b, const Value *value) {
  if (!producer_chooses(b, value) || !has_pixels(value)) return false;
  const NodeLayouts *layouts = &b->problem->nodes[b->node_variable[value->producer->id]];
  bool wide = false;
  for (int a = 0; a < layouts->n; a++) wide |= layouts->layout[a].writes == LAYOUT_WIDE;
  return wide;
}

static void add_values(Builder *b) {
  LayoutProblem *problem = b->problem;
  const Graph *graph = problem->graph;
  problem->values = ARENA_ARRAY(graph->arena, ValueLayouts, graph->n_values);
  for (int id = 0; id < graph->n_values; id++) {
    Value *value = graph->values[id];
    b->value_variable[id] = -1;
    if (value->data || !can_be_blocked(value) || !(b->wanted[id] || producer_chooses(b, value))) continue;
    ValueLayouts *layouts = &problem->values[problem->n_values++];
    layouts->value = value;
    add_alternatives(b, layouts, LAYOUT_ROW_MAJOR);
    if (producer_chooses(b, value)) add_alternatives(b, layouts, LAYOUT_BLOCKED);
    if (producer_writes_wide(b, value)) add_alternatives(b, layouts, LAYOUT_WIDE);
    b->value_variable[id] = choices_add_variable(problem->choices, layouts->n, layouts->seconds);
  }
}

static const ValueLayouts *value_layouts(const Builder *b, int variable) {
  return &b->problem->values[variable - b->problem->n_nodes];
}

/* ---- pairs ---- */

/* As the rule does, a row-major image that can be read narrow is not read in blocks of a vector. */
static bool reads_as_made(const NodeLayouts *node, int alternative, int input, Layout made) {
  bool could_be_narrow = false;
  for (int a = 0; a < node->n; a++) could_be_narrow |= node->layout[a].reads == LAYOUT_NARROW;
  return input > 0 || made != LAYOUT_ROW_MAJOR || !could_be_narrow || node->layout[alternative].reads != LAYOUT_BLOCKED;
}

/* Does the value exist as alternative `i` of the node reads it? */
static bool reader_fits(const NodeLayouts *node, int i, int input, const ValueLayouts *value, int j) {
  return contains(value->exists[j], wants(node, i, input)) && reads_as_made(node, i, input, value->made[j]);
}

/* Is it made as alternative `i` writes it? */
static bool writer_fits(const NodeLayouts *node, int i, int output, const ValueLayouts *value, int j) {
  (void)output;
  return value->made[j] == (has_pixels(value->value) ? node->layout[i].writes : LAYOUT_ROW_MAJOR);
}

/* place: of the value among the node's inputs or outputs. */
static void add_pair(const Builder *b, int node_variable, int id, int place,
                     bool (*fits)(const NodeLayouts *, int, int, const ValueLayouts *, int)) {
  const NodeLayouts *node = &b->problem->nodes[node_variable];
  int variable = b->value_variable[id];
  if (variable < 0) return;
  const ValueLayouts *value = value_layouts(b, variable);
  double cost[MAX_NODE_LAYOUTS * MAX_VALUE_LAYOUTS];
  for (int i = 0; i < node->n; i++)
    for (int j = 0; j < value->n; j++) cost[i * value->n + j] = fits(node, i, place, value, j) ? 0 : INFINITY;
  choices_add_pair(b->problem->choices, node_variable, variable, cost);
}

static void add_pairs(const Builder *b) {
  for (int v = 0; v < b->problem->n_nodes; v++) {
    const Node *node = b->problem->nodes[v].node;
    for (int i = 0; i < node->n_inputs; i++)
      if (is_read(node->inputs[i])) add_pair(b, v, node->inputs[i]->id, i, reader_fits);
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i]) add_pair(b, v, node->outputs[i]->id, i, writer_fits);
  }
}

LayoutProblem *layout_problem(Graph *graph, const LayoutSet *possible) {
  Arena *arena = graph->arena;
  LayoutProblem *problem = ARENA_NEW(arena, LayoutProblem);
  *problem = (LayoutProblem){.graph = graph, .choices = choices_new(arena)};
  Builder b = {.problem = problem,
               .possible = possible,
               .node_variable = ARENA_ARRAY(arena, int, graph->n_nodes),
               .value_variable = ARENA_ARRAY(arena, int, graph->n_values),
               .wanted = ARENA_ARRAY(arena, unsigned, graph->n_values),
               .row_major_too = ARENA_ARRAY(arena, bool, graph->n_values)};
  add_nodes(&b);
  note_readers(&b);
  add_values(&b);
  add_pairs(&b);
  return problem;
}

/* ---- assignments ---- */

/* The alternative that the greedy pass chose, which is never wide. */
static int alternative_of(const NodeLayouts *layouts) {
  bool blocked = is_blocked(layouts->node), narrow = layouts->node->inputs[0]->channel_block == 0;
  int chosen = 0;
  for (int a = 0; a < layouts->n; a++) {
    Layout reads = layouts->layout[a].reads;
    if (blocked != (reads != LAYOUT_ROW_MAJOR) || is_wide_alternative(layouts, a)) continue;
    if (reads == LAYOUT_NARROW && !narrow) continue;
    chosen = a;
    if (reads == LAYOUT_NARROW) break;
  }
  return chosen;
}

/* The alternative with the fewest layouts that has those needed. */
static int value_alternative(const ValueLayouts *layouts, unsigned needed) {
  Layout made = layouts->value->channel_block ? LAYOUT_BLOCKED : LAYOUT_ROW_MAJOR;
  int best = -1;
  for (int a = 0; a < layouts->n; a++)
    if (layouts->made[a] == made && (layouts->exists[a] & needed) == needed &&
        (best < 0 || (layouts->exists[a] & ~layouts->exists[best]) == 0))
      best = a;
  return best;
}

int *layout_assignment(const LayoutProblem *problem) {
  const Graph *graph = problem->graph;
  int *chosen = ARENA_ARRAY(graph->arena, int, problem->choices->n_variables);
  unsigned *needed = ARENA_ARRAY(graph->arena, unsigned, graph->n_values);
  for (int v = 0; v < problem->n_nodes; v++) {
    const NodeLayouts *layouts = &problem->nodes[v];
    chosen[v] = alternative_of(layouts);
    for (int i = 0; i < layouts->node->n_inputs; i++)
      if (is_read(layouts->node->inputs[i])) needed[layouts->node->inputs[i]->id] |= 1U << wants(layouts, chosen[v], i);
  }
  for (int v = 0; v < problem->n_values; v++)
    chosen[problem->n_nodes + v] = value_alternative(&problem->values[v], needed[problem->values[v].value->id]);
  return chosen;
}

void layout_apply(const LayoutProblem *problem, const int *chosen) {
  for (int v = 0; v < problem->n_nodes; v++) {
    const NodeLayouts *layouts = &problem->nodes[v];
    lay_out(problem->graph, layouts->node, layouts->layout[chosen[v]]);
  }
}
