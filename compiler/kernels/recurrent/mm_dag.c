/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/mm_dag.h"

#include "kernels/recurrent/stack.h"
#include "support/list.h"

int mm_index(const MmLayer *layer, int direction, MmOperand operand, int gate) {
  return layer->first + (direction * 2 + (operand == MM_HIDDEN)) * layer->gates + gate;
}

static bool is_recurrent(const Node *node) { return node->op->family == &family_recurrent; }
static bool is_product(const Node *node) { return node->op->family == &family_matmul; }

/* ---- the matrix products that a value depends on, through all other nodes ---- */

typedef struct Source {
  const Node *node; /* recurrent, MatMul or Gemm */
  int output;
  bool keeps_steps; /* an element of a step depends on elements of that step only */
} Source;

typedef struct Search {
  Graph *graph;
  int *seen; /* by value id: 2 * round, + 1 if a path that mixes steps was found */
  int round;
  int n_stack, n_sources;
  struct {
    const Value *value;
    bool keeps_steps;
  } *stack;
  Source *sources;
} Search;

static Search *search_new(Graph *graph) {
  Search *s = ARENA_NEW(graph->arena, Search);
  int most = 2 * graph->n_values + 2;
  s->graph = graph;
  s->seen = ARENA_ARRAY(graph->arena, int, graph->n_values);
  s->stack = arena_array(graph->arena, (size_t)most, sizeof *s->stack);
  s->sources = ARENA_ARRAY(graph->arena, Source, most);
  return s;
}

static void push(Search *s, const Value *value, bool keeps_steps) {
  if (!value || value->data || value->id >= s->graph->n_values) return;
  int mark = 2 * s->round + !keeps_steps;
  if (s->seen[value->id] >= mark) return;
  s->seen[value->id] = mark;
  s->stack[s->n_stack].value = value;
  s->stack[s->n_stack++].keeps_steps = keeps_steps;
}

/* Does the node keep steps, the first axis (or the second with `layout` = 1), apart? */
static bool node_keeps_steps(const Node *node) {
  if (op_is_view(node->op) || node->op->layout == LAYOUT_OBLIVIOUS || is_op(node, OP_Concat)) return true;
  if (!is_op(node, OP_Transpose)) return false;
  const Attribute *perm = node_attribute(node, ATTR_perm);
  return perm && perm->count > 0 && perm->ints[0] == 0;
}

static void follow(Search *s, const Value *value, bool keeps_steps) {
  const Node *node = value->producer;
  if (!node) return;
  if (is_recurrent(node) || is_product(node)) {
    s->sources[s->n_sources++] = (Source){node, value->producer_output, keeps_steps};
    return;
  }
  bool keeps = keeps_steps && node_keeps_steps(node);
  for (int i = 0; i < node->n_inputs; i++) push(s, node->inputs[i], keeps);
}

/* The sources of a value; a source may occur twice, with and without keeps_steps. */
static void find_sources(Search *s, const Value *value) {
  s->round++;
  s->n_sources = 0;
  push(s, value, true);
  while (s->n_stack > 0) {
    s->n_stack--;
    follow(s, s->stack[s->n_stack].value, s->stack[s->n_stack].keeps_steps);
  }
}

/* ---- MatMuls and Gemms around ---- */

/* By node id: the MatMuls and Gemms next to a recurrent op. */
static bool *find_around(Graph *graph, Search *search) {
  bool *around = ARENA_ARRAY(graph->arena, bool, graph->n_nodes);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    if (!is_recurrent(node) && !is_product(node)) continue;
    for (int i = 0; i < node->n_inputs; i++) {
      find_sources(search, node->inputs[i]);
      for (int k = 0; k < search->n_sources; k++) {
        const Node *source = search->sources[k].node;
        if (is_recurrent(node) && is_product(source)) around[source->id] = true;
        if (is_product(node) && is_recurrent(source)) around[node->id] = true;
      }
    }
  }
  return around;
}

/* ---- nodes of the DAG ---- */

static MmLayer layer_from(const Graph *graph, Node *node) {
  int place;
  const Value *x = node->inputs[INPUT_X], *w = node->inputs[INPUT_W];
  Direction direction = node_word(node, ATTR_direction);
  MmLayer layer = {.node = node, .cell = cell_of(node)};
  layer.gates = cell_kind(node->op->kind)->gates;
  layer.directions = direction == DIRECTION_bidirectional ? 2 : 1;
  layer.reverse = direction == DIRECTION_reverse;
  layer.stacked = stack_of(graph, node, &place) != NULL;
  layer.batch_first = node_int(node, ATTR_layout) != 0;
  layer.steps = x->shape[layer.batch_first ? 1 : 0];
  layer.batch = x->shape[layer.batch_first ? 0 : 1];
  layer.inputs = dim_optimum(w->shape[2]);
  layer.hidden = node_int(node, ATTR_hidden_size);
  return layer;
}

static void add_layer_mms(MmDag *dag, int index) {
  MmLayer *layer = &dag->layers[index];
  layer->first = dag->n_mms;
  for (int direction = 0; direction < layer->directions; direction++) {
    for (int operand = MM_INPUT; operand <= MM_HIDDEN; operand++) {
      for (int gate = 0; gate < layer->gates; gate++) {
        dag->mms[dag->n_mms++] = (Mm){.node = layer->node,
                                      .operand = (MmOperand)operand,
                                      .layer = index,
                                      .direction = direction,
                                      .gate = gate,
                                      .way = direction || layer->reverse ? MM_REVERSE : MM_FORWARD,
                                      .columns = layer->hidden,
                                      .depth = operand == MM_INPUT ? layer->inputs : layer->hidden};
      }
    }
  }
}

/* The depth K is the left operand's last axis, or its first if Gemm transposes it. */
static void add_around_mm(MmDag *dag, const Node *node) {
  const Value *a = node->inputs[0], *c = node->outputs[0];
  bool turned = is_op(node, OP_Gemm) && node_int(node, ATTR_transA);
  dag->mms[dag->n_mms++] = (Mm){.node = node,
                                .operand = MM_AROUND,
                                .layer = -1,
                                .way = MM_ANY_WAY,
                                .columns = c->rank > 0 ? dim_optimum(c->shape[c->rank - 1]) : 1,
                                .depth = a->rank > 0 ? dim_optimum(a->shape[turned ? 0 : a->rank - 1]) : 1};
}

static void add_nodes(Graph *graph, MmDag *dag, const bool *around, int *first_of) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    first_of[n] = dag->n_mms;
    if (is_recurrent(node)) {
      dag->layers[dag->n_layers] = layer_from(graph, node);
      add_layer_mms(dag, dag->n_layers++);
    } else if (around[n]) {
      add_around_mm(dag, node);
    }
  }
}

/* ---- edges ---- */

static int layer_mms(const MmLayer *layer) { return layer->directions * 2 * layer->gates; }

typedef struct Needs {
  Arena *arena;
  int count, capacity;
  MmNeed *list;
} Needs;

static void add_need(Needs *needs, int from, MmWhen when) {
  for (int i = 0; i < needs->count; i++) {
    if (needs->list[i].from != from) continue;
    if (needs->list[i].when == when) return;
    if (when == MM_ALL_STEPS) needs->list[i].when = MM_ALL_STEPS;
    if (needs->list[i].when == MM_ALL_STEPS) return;
  }
  *LIST_ADD(needs->arena, needs->list, needs->count, needs->capacity) = (MmNeed){from, when};
}

/* All products of a layer: its hidden state and Y depend on every gate. */
static void need_layer(Needs *needs, const MmLayer *layer, MmWhen when) {
  for (int i = 0; i < layer_mms(layer); i++) add_need(needs, layer->first + i, when);
}

/* The state of one direction after the step before. With CELL_GRU_BEFORE the candidate gate also needs the reset gate
 * of the same step. */
static void need_state(Needs *needs, const MmLayer *layer, int direction, int gate) {
  for (int operand = MM_INPUT; operand <= MM_HIDDEN; operand++) {
    for (int g = 0; g < layer->gates; g++)
      add_need(needs, mm_index(layer, direction, (MmOperand)operand, g), MM_STEP_BEFORE);
    if (layer->cell == CELL_GRU_BEFORE && gate == GRU_h)
      add_need(needs, mm_index(layer, direction, (MmOperand)operand, GRU_r), MM_SAME_STEP);
  }
}

typedef struct Linker {
  MmDag *dag;
  Search *search;
  const int *first_of; /* by node id: its first product, if the next node's is another */
  const bool *around;
} Linker;

static const MmLayer *layer_at(const MmDag *dag, int mm) {
  return dag->mms[mm].layer < 0 ? NULL : &dag->layers[dag->mms[mm].layer];
}

/* A step of a bidirectional layer gives results of two times. */
static MmWay way_of_layer(const MmLayer *layer) {
  if (layer->directions == 2) return MM_BOTH_WAYS;
  return layer->reverse ? MM_REVERSE : MM_FORWARD;
}

static MmWay way_of_source(const Linker *l, const Source *source) {
  int first = l->first_of[source->node->id];
  const MmLayer *layer = layer_at(l->dag, first);
  if (!source->keeps_steps || (layer && source->output != 0)) return MM_BOTH_WAYS;
  return layer ? way_of_layer(layer) : l->dag->mms[first].way;
}

static void need_source(const Linker *l, Needs *needs, const Source *source, MmWay way) {
  if (is_product(source->node) && !l->around[source->node->id]) return;
  int first = l->first_of[source->node->id];
  MmWay from = way_of_source(l, source);
  bool together = from == MM_ANY_WAY || (from == way && way != MM_BOTH_WAYS);
  MmWhen when = together ? MM_SAME_STEP : MM_ALL_STEPS;
  const MmLayer *layer = layer_at(l->dag, first);
  if (layer)
    need_layer(needs, layer, when);
  else
    add_need(needs, first, when);
}

static void need_value(const Linker *l, Needs *needs, const Value *value, MmWay way) {
  find_sources(l->search, value);
  for (int i = 0; i < l->search->n_sources; i++) need_source(l, needs, &l->search->sources[i], way);
}

static void link_layer_mm(const Linker *l, Mm *mm, Needs *needs) {
  const Node *node = mm->node;
  if (mm->operand == MM_INPUT) {
    need_value(l, needs, node->inputs[INPUT_X], mm->way);
    return;
  }
  need_state(needs, &l->dag->layers[mm->layer], mm->direction, mm->gate);
  for (int i = INPUT_H; i <= INPUT_C && i < node->n_inputs; i++) need_value(l, needs, node->inputs[i], MM_BOTH_WAYS);
}

/* A product that reads one layer step by step has that layer's order; with several layers, or all steps of one, none.
 */
static void link_around_mm(const Linker *l, Mm *mm, Needs *needs) {
  MmWay way = MM_ANY_WAY;
  for (int i = 0; i < mm->node->n_inputs; i++) {
    find_sources(l->search, mm->node->inputs[i]);
    for (int k = 0; k < l->search->n_sources; k++) {
      const Source *source = &l->search->sources[k];
      if (is_product(source->node) && !l->around[source->node->id]) continue;
      MmWay from = way_of_source(l, source);
      if (from == MM_ANY_WAY || from == way) continue;
      way = way == MM_ANY_WAY ? from : MM_BOTH_WAYS;
    }
  }
  mm->way = way;
  for (int i = 0; i < mm->node->n_inputs; i++) need_value(l, needs, mm->node->inputs[i], way);
}

static void add_edges(Graph *graph, const Linker *l) {
  for (int i = 0; i < l->dag->n_mms; i++) {
    Mm *mm = &l->dag->mms[i];
    Needs needs = {.arena = graph->arena};
    if (mm->operand == MM_AROUND)
      link_around_mm(l, mm, &needs);
    else
      link_layer_mm(l, mm, &needs);
    mm->needs = needs.list;
    mm->n_needs = needs.count;
  }
}

/* ---- */

static void count_nodes(const Graph *graph, int *layers, int *products) {
  for (int i = 0; i < graph->n_nodes; i++) {
    *layers += is_recurrent(graph->nodes[i]);
    *products += is_product(graph->nodes[i]);
  }
}

MmDag *mm_dag(Graph *graph) {
  enum { MAX_OF_LAYER = 2 * 2 * 4 };
  MmDag *dag = ARENA_NEW(graph->arena, MmDag);
  int layers = 0, products = 0;
  count_nodes(graph, &layers, &products);
  if (layers == 0) return dag;
  dag->layers = ARENA_ARRAY(graph->arena, MmLayer, layers);
  dag->mms = ARENA_ARRAY(graph->arena, Mm, layers * MAX_OF_LAYER + products);
  Search *search = search_new(graph);
  int *first_of = ARENA_ARRAY(graph->arena, int, graph->n_nodes);
  bool *around = find_around(graph, search);
  add_nodes(graph, dag, around, first_of);
  Linker linker = {dag, search, first_of, around};
  add_edges(graph, &linker);
  return dag;
}
