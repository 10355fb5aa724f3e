/* SPDX-License-Identifier: MIT */
#include "ir/bodies.h"

#include "ir/op.h"
#include "support/list.h"

/* ---- maps of values ---- */

typedef struct ValueMap {
  Arena *arena;
  int count, n_slots; /* open addressing, a power of two, at most half full */
  const Value **from;
  Value **to;
} ValueMap;

enum { FIRST_SLOTS = 64 };

static ValueMap map_new(Arena *arena, int n_slots) {
  return (ValueMap){.arena = arena,
                    .n_slots = n_slots,
                    .from = ARENA_ARRAY(arena, const Value *, n_slots),
                    .to = ARENA_ARRAY(arena, Value *, n_slots)};
}

static int slot_of(const ValueMap *map, const Value *value) {
  uint64_t hash = (uint64_t)(uintptr_t)value * UINT64_C(0x9e3779b97f4a7c15);
  int slot = (int)(hash >> 40) & (map->n_slots - 1);
  while (map->from[slot] && map->from[slot] != value) slot = (slot + 1) & (map->n_slots - 1);
  return slot;
}

static void map_set(ValueMap *map, const Value *from, Value *to) {
  if (2 * map->count >= map->n_slots) {
    ValueMap larger = map_new(map->arena, 2 * map->n_slots);
    for (int i = 0; i < map->n_slots; i++)
      if (map->from[i]) map_set(&larger, map->from[i], map->to[i]);
    *map = larger;
  }
  int slot = slot_of(map, from);
  map->count += !map->from[slot];
  map->from[slot] = from;
  map->to[slot] = to;
}

static Value *map_get(const ValueMap *map, const Value *from) { return map->to[slot_of(map, from)]; }

/* ---- bodies of a node ---- */

int node_bodies(const Node *node, Attribute *bodies[MAX_BODIES]) {
  int n = 0;
  for (int i = 0; i < node->n_attributes && n < MAX_BODIES; i++)
    if (node->attributes[i].kind == ATTRIBUTE_GRAPH) bodies[n++] = &node->attributes[i];
  return n;
}

static bool drops(const Graph *graph, const Node *node) {
  const Value *mode = node_input(node, DROPOUT_MODE);
  if (mode) return mode->data && *(const uint8_t *)mode->data;
  return graph->config && graph->config->training.wanted;
}

bool node_draws(const Graph *graph, const Node *node) {
  return op_draws(node->op) && (!is_op(node, OP_Dropout) || drops(graph, node));
}

bool graph_draws(const Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(graph->nodes[n], bodies);
    if (node_draws(graph, graph->nodes[n])) return true;
    for (int b = 0; b < count; b++)
      if (graph_draws(bodies[b]->graph)) return true;
  }
  return false;
}

Graph *body_new(Graph *outer, const char *name) {
  Graph *body = ARENA_NEW(outer->arena, Graph);
  *body = (Graph){.arena = outer->arena,
                  .outer = outer,
                  .dims = outer->dims,
                  .config = outer->config,
                  .name = name,
                  .version = "",
                  .file = outer->file};
  return body;
}

void graph_each(Graph *graph, void (*pass)(Graph *)) {
  pass(graph);
  for (int n = 0; n < graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    int count = graph->nodes[n]->control ? node_bodies(graph->nodes[n], bodies) : 0;
    for (int b = 0; b < count; b++) graph_each(bodies[b]->graph, pass);
  }
}

/* ---- captures ---- */

static bool is_constant(const Value *value) { return value->data && !value->producer; }

/* The body's input for an outer value, which becomes a capture of the node. */
static void capture(Graph *graph, Node *node, ValueMap *captured, Value *outer) {
  if (map_get(captured, outer)) return;
  map_set(captured, outer, outer);
  *LIST_APPEND(graph->arena, node->inputs, node->n_inputs) = outer;
  node->n_captures++;
}

static ValueMap values_inside(Graph *body) {
  ValueMap inside = map_new(body->arena, FIRST_SLOTS);
  for (int i = 0; i < body->n_inputs; i++) map_set(&inside, body->inputs[i], body->inputs[i]);
  for (int n = 0; n < body->n_nodes; n++)
    for (int i = 0; i < body->nodes[n]->n_outputs; i++)
      if (body->nodes[n]->outputs[i]) map_set(&inside, body->nodes[n]->outputs[i], body->nodes[n]->outputs[i]);
  return inside;
}

/* Calls `visit` with every reference of the body to an outer value. */
static void visit_outside(Graph *body, void (*visit)(void *, Value **), void *argument) {
  ValueMap inside = values_inside(body);
  for (int n = 0; n < body->n_nodes; n++)
    for (int i = 0; i < body->nodes[n]->n_inputs; i++) {
      Value **place = &body->nodes[n]->inputs[i];
      if (*place && !is_constant(*place) && !map_get(&inside, *place)) visit(argument, place);
    }
  for (int i = 0; i < body->n_outputs; i++) {
    Value **place = &body->outputs[i];
    if (!is_constant(*place) && !map_get(&inside, *place)) visit(argument, place);
  }
}

static void note_outside(void *argument, Value **place) {
  (void)place;
  *(bool *)argument = true;
}

bool body_reads_outside(Graph *body) {
  bool outside = false;
  visit_outside(body, note_outside, &outside);
  return outside;
}

typedef struct Capturing {
  Graph *graph;
  Node *node;
  ValueMap map; /* first the captures; then the body's inputs for them */
} Capturing;

static void note_capture(void *argument, Value **place) {
  Capturing *c = argument;
  capture(c->graph, c->node, &c->map, *place);
}

static void use_stand_in(void *argument, Value **place) { *place = map_get(&((Capturing *)argument)->map, *place); }

/* Adds inputs to the body for all captures, also for those that only the other body reads. */
static void add_stand_ins(Capturing *c, Graph *body) {
  const Node *node = c->node;
  c->map = map_new(body->arena, FIRST_SLOTS);
  for (int i = node->n_inputs - node->n_captures; i < node->n_inputs; i++) {
    Value *value = graph_value(body, node->inputs[i]->name, node->inputs[i]->where);
    value->is_input = true;
    *LIST_APPEND(body->arena, body->inputs, body->n_inputs) = value;
    map_set(&c->map, node->inputs[i], value);
  }
}

void node_capture(Graph *graph, Node *node) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  Capturing c = {graph, node, map_new(graph->arena, FIRST_SLOTS)};
  for (int b = 0; b < count; b++) visit_outside(bodies[b]->graph, note_capture, &c);
  for (int b = 0; b < count && node->n_captures; b++) {
    Graph *body = bodies[b]->graph;
    Capturing own = {graph, node, {0}};
    int formal = body->n_inputs;
    add_stand_ins(&own, body);
    body->n_inputs = formal; /* hides the new inputs: references still are to outer values */
    visit_outside(body, use_stand_in, &own);
    body->n_inputs = formal + node->n_captures;
  }
}

/* ---- copies ---- */

/* Nodes are copied as they were read, without what inference has set; or as they are now. */
typedef struct Copying {
  Graph *into;
  ValueMap map;
  bool inferred;
} Copying;

static Value *copy_value(Graph *into, const Value *from) {
  Value *value = graph_value(into, from->name, from->where);
  int id = value->id;
  *value = *from;
  value->id = id;
  value->producer = NULL;
  return value;
}

/* Copies constants, and lists that only shape rules read, when they are first read. */
static Value *mapped(Copying *c, Value *from) {
  if (!from) return NULL;
  Value *to = map_get(&c->map, from);
  if (to) return to;
  if (!is_constant(from) && !value_is_for_shapes(from)) bug("a body reads %s, which is not in it", from->name);
  to = copy_value(c->into, from);
  map_set(&c->map, from, to);
  return to;
}

static Graph *clone(Graph *outer, const Graph *source, bool inferred);

static void copy_attributes(const Copying *c, Node *node, const Node *from) {
  Arena *arena = c->into->arena;
  node->n_attributes = from->n_attributes;
  node->attributes = arena_copy(arena, from->attributes, (size_t)from->n_attributes * sizeof *from->attributes);
  for (int i = 0; i < node->n_attributes; i++) {
    Attribute *attribute = &node->attributes[i];
    const Graph *body = attribute->source && !c->inferred ? attribute->source : attribute->graph;
    if (attribute->kind == ATTRIBUTE_GRAPH) attribute->graph = clone(c->into, body, c->inferred);
    attribute->source = NULL;
  }
}

static Node *copy_node(Copying *c, const Node *from) {
  Arena *arena = c->into->arena;
  Node *node = ARENA_NEW(arena, Node);
  node->name = from->name;
  node->where = from->where;
  node->op = from->op;
  node->n_inputs = from->n_inputs;
  node->n_captures = from->n_captures;
  node->n_outputs = from->n_outputs;
  node->inputs = ARENA_ARRAY(arena, Value *, from->n_inputs);
  node->outputs = ARENA_ARRAY(arena, Value *, from->n_outputs);
  if (c->inferred) node->exact = from->exact;
  if (c->inferred) node->control = from->control;
  for (int i = 0; i < from->n_inputs; i++) node->inputs[i] = mapped(c, from->inputs[i]);
  for (int i = 0; i < from->n_outputs; i++) {
    if (!from->outputs[i]) continue;
    Value *value = copy_value(c->into, from->outputs[i]);
    map_set(&c->map, from->outputs[i], value);
    graph_set_output(node, i, value);
  }
  copy_attributes(c, node, from);
  return node;
}

static void copy_nodes(Copying *c, const Graph *body, Value *const *arguments, Node **nodes, Value **results) {
  c->map = map_new(c->into->arena, FIRST_SLOTS);
  for (int i = 0; i < body->n_inputs; i++) map_set(&c->map, body->inputs[i], arguments[i]);
  for (int n = 0; n < body->n_nodes; n++) nodes[n] = copy_node(c, body->nodes[n]);
  for (int i = 0; i < body->n_outputs; i++) results[i] = mapped(c, body->outputs[i]);
}

int body_copy_nodes(Graph *into, const Graph *body, Value *const *arguments, Node **nodes, Value **results) {
  copy_nodes(&(Copying){.into = into}, body, arguments, nodes, results);
  return body->n_nodes;
}

static void append_copies(Copying *c, const Graph *body, Value *const *arguments, Value **results) {
  Node **nodes = ARENA_ARRAY(c->into->arena, Node *, body->n_nodes);
  copy_nodes(c, body, arguments, nodes, results);
  for (int n = 0; n < body->n_nodes; n++) graph_append(c->into, nodes[n]);
}

void body_append_inferred(Graph *into, const Graph *body, Value *const *arguments, Value **results) {
  append_copies(&(Copying){.into = into, .inferred = true}, body, arguments, results);
}

static Graph *clone(Graph *outer, const Graph *source, bool inferred) {
  Graph *body = body_new(outer, source->name);
  body->n_inputs = source->n_inputs;
  body->n_outputs = source->n_outputs;
  body->inputs = ARENA_ARRAY(outer->arena, Value *, source->n_inputs);
  body->outputs = ARENA_ARRAY(outer->arena, Value *, source->n_outputs);
  for (int i = 0; i < source->n_inputs; i++) body->inputs[i] = copy_value(body, source->inputs[i]);
  append_copies(&(Copying){.into = body, .inferred = inferred}, source, body->inputs, body->outputs);
  if (inferred) graph_renumber(body);
  return body;
}

Graph *body_clone(Graph *outer, const Graph *source) { return clone(outer, source, false); }
