/* SPDX-License-Identifier: MIT */
/* Value numbering: nodes in order, each looked up by its operator and what its inputs are known to equal. */
#include "ir/equal_nodes.h"

#include <string.h>

#include "ir/bodies.h"
#include "ir/narrow.h"
#include "ir/op.h"

/* ---- values ---- */

static bool equal_constants(const Value *a, const Value *b) {
  if (a->dtype != b->dtype || a->rank != b->rank || a->block != b->block) return false; /* blocks change apart */
  for (int axis = 0; axis < a->rank; axis++)
    if (dim_value(a->shape[axis]) != dim_value(b->shape[axis])) return false;
  return a->data == b->data || !memcmp(a->data, b->data, (size_t)value_max_bytes(a));
}

bool equal_values(Node *const *first, const Value *a, const Value *b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->producer && b->producer)
    return a->producer_output == b->producer_output && first[a->producer->id] == first[b->producer->id];
  return value_is_constant(a) && value_is_constant(b) && narrow_alike(a->narrow, b->narrow) && equal_constants(a, b);
}

/* ---- nodes ---- */

static bool equal_attributes(const Attribute *a, const Attribute *b) {
  if (a->id != b->id || a->kind != b->kind || a->i != b->i || a->f != b->f || a->count != b->count) return false;
  switch (a->kind) {
  case ATTRIBUTE_INTS:
    return !memcmp(a->ints, b->ints, a->count * sizeof *a->ints);
  case ATTRIBUTE_FLOATS:
    return !memcmp(a->floats, b->floats, a->count * sizeof *a->floats);
  case ATTRIBUTE_TENSOR:
    return equal_constants(a->tensor, b->tensor);
  case ATTRIBUTE_STRING:
    return !strcmp(a->s, b->s);
  case ATTRIBUTE_STRINGS:
    for (size_t i = 0; i < a->count; i++)
      if (strcmp(a->strings[i], b->strings[i]) != 0) return false;
    return true;
  case ATTRIBUTE_GRAPH:
    return false;
  default:
    return true; /* told by `i` and `f` */
  }
}

bool same_attributes(const Node *a, const Node *b) {
  if (a->n_attributes != b->n_attributes) return false;
  for (int i = 0; i < a->n_attributes; i++)
    if (!equal_attributes(&a->attributes[i], &b->attributes[i])) return false;
  return true;
}

static bool equal(Node *const *first, const Node *a, const Node *b) {
  if (a->op != b->op || a->n_inputs != b->n_inputs || !same_attributes(a, b)) return false;
  if (a->op->max_outputs < 0 && a->n_outputs != b->n_outputs) return false; /* a Split into other parts */
  for (int i = 0; i < a->n_inputs; i++)
    if (!equal_values(first, a->inputs[i], b->inputs[i])) return false;
  return true;
}

/* Equal nodes have the same; of constants only the types and ranks count. */
static uint64_t hash_of(Node *const *first, const Node *node) {
  uint64_t hash = (uint64_t)node->op->kind;
  for (int i = 0; i < node->n_inputs; i++) {
    const Value *value = node->inputs[i];
    uint64_t part = 0;
    if (value && value->producer)
      part = (uint64_t)first[value->producer->id]->id * 8 + (uint64_t)value->producer_output + 1;
    else if (value)
      part = value_is_constant(value) ? (uint64_t)value->dtype : (uint64_t)value->id << 32;
    hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
  }
  return hash ^ hash >> 32;
}

typedef struct Table {
  int n_slots; /* a power of two, at least twice as many as nodes */
  Node **slots;
} Table;

static Node *find_or_add(const Table *table, Node *const *first, Node *node) {
  int slot = (int)(hash_of(first, node) & (uint64_t)(table->n_slots - 1));
  while (table->slots[slot] && !equal(first, table->slots[slot], node)) slot = (slot + 1) & (table->n_slots - 1);
  if (!table->slots[slot]) table->slots[slot] = node;
  return table->slots[slot];
}

Node **equal_nodes(Graph *graph) {
  Node **first = ARENA_ARRAY(graph->arena, Node *, graph->n_nodes + 1);
  Table table = {.n_slots = 2};
  graph_renumber(graph);
  while (table.n_slots < 2 * graph->n_nodes) table.n_slots *= 2;
  table.slots = ARENA_ARRAY(graph->arena, Node *, table.n_slots);
  for (int i = 0; i < graph->n_nodes; i++) {
    Attribute *bodies[MAX_BODIES];
    bool alone = node_bodies(graph->nodes[i], bodies) > 0 || graph->nodes[i]->n_inputs == 0;
    first[i] = alone ? graph->nodes[i] : find_or_add(&table, first, graph->nodes[i]);
  }
  return first;
}
