/* SPDX-License-Identifier: MIT */
#include "ir/mutable.h"

#include "ir/tensor.h"
#include "support/list.h"

int mutable_blocks(const MutableWeights *m) { return m->n_weights + m->n_derived + m->n_packed; }

int64_t mutable_block_bytes(const MutableWeights *m, int block) {
  int derived = block - m->n_weights, packed = derived - m->n_derived;
  return value_max_bytes(derived < 0 ? m->weights[block].given : packed < 0 ? m->derived[derived] : m->packed[packed]);
}

/* ---- weights that need not be kept ---- */

static bool has_other_sources(const MutableWeights *m, int target, int source) {
  for (int i = 0; i < m->n_copies; i++)
    if (m->copies[i].target == target && m->copies[i].source != source) return true;
  return false;
}

/* Marks the elements that the copy reads; returns how many it had not marked before. */
static int64_t mark_elements(const WeightCopy *copy, bool *marks) {
  int64_t turns = 1, found = 0;
  for (int i = 0; i < copy->rank; i++) turns *= copy->extents[i];
  for (int64_t turn = 0; turn < turns; turn++) {
    int64_t from = copy->from, rest = turn;
    for (int i = copy->rank - 1; i >= 0; i--) {
      from += rest % copy->extents[i] * copy->from_strides[i];
      rest /= copy->extents[i];
    }
    found += !marks[from];
    marks[from] = true;
  }
  return found;
}

static bool derivation_reads(const MutableWeights *m, int weight) {
  if (!m->derivation) return false;
  const Value *value = m->derivation->inputs[weight];
  return value->id >= 0 && graph_uses(m->derivation).count[value->id] > 0;
}

bool weight_is_kept(Arena *scratch, const MutableWeights *m, int weight, bool is_read) {
  if (is_read || derivation_reads(m, weight)) return true;
  int64_t count = value_count(m->weights[weight].given), found = 0;
  bool *marks = ARENA_ARRAY(scratch, bool, count);
  for (int i = 0; i < m->n_copies; i++) {
    const WeightCopy *copy = &m->copies[i];
    if (copy->source != weight) continue;
    if (copy->adds || copy->dtype != RNNCC_F32 || has_other_sources(m, copy->target, weight)) return true;
    found += mark_elements(copy, marks);
  }
  return found < count;
}

const void *made_up_numbers(Arena *arena, const Value *value, int64_t salt) {
  int64_t count = value_count(value);
  Tensor *tensor = tensor_new(arena, value->dtype, 1, &count);
  for (int64_t i = 0; i < count; i++)
    tensor_set(tensor, i, 0.5 + 0.25 * ((double)((i + salt * 7919) % 65521) + 0.5) / 65521);
  return tensor->data;
}

/* ---- what a derivation computes ---- */

static Value *constant_of_block(Graph *graph, const Value *computed, int block) {
  Value *constant = ARENA_NEW(graph->arena, Value);
  *constant = *computed;
  constant->id = -1;
  constant->producer = NULL;
  constant->block = block;
  constant->data = made_up_numbers(graph->arena, constant, block);
  return constant;
}

Value *derived_constant(Graph *graph, Value *computed) {
  MutableWeights *m = graph->mutables;
  Value *constant = constant_of_block(graph, computed, m->n_weights + m->n_derived + 1);
  *LIST_ADD(graph->arena, m->derived, m->n_derived, m->derived_capacity) = constant;
  *LIST_APPEND(graph->arena, m->derivation->outputs, m->derivation->n_outputs) = computed;
  return constant;
}

Value *derived_instead(Graph *graph, const Value *constant, Value *computed) {
  MutableWeights *m = graph->mutables;
  int i = constant->block - 1 - m->n_weights;
  m->derivation->outputs[i] = computed;
  return m->derived[i] = constant_of_block(graph, computed, constant->block);
}

Value *derivation_value(const MutableWeights *m, const Value *constant) {
  int block = constant->block - 1;
  return block < m->n_weights ? m->derivation->inputs[block] : m->derivation->outputs[block - m->n_weights];
}

/* ---- parts of a derivation ---- */

/* A set is named by its member that is its own leader. */
static int leader_of(int *leaders, int id) {
  while (leaders[id] != id) id = leaders[id] = leaders[leaders[id]];
  return id;
}

static void join_values(int *leaders, const Value *value, int *with) {
  if (!value || value->data) return;
  if (*with < 0) *with = value->id;
  leaders[leader_of(leaders, value->id)] = leader_of(leaders, *with);
  if (value->view_of) join_values(leaders, value->view_of, with);
}

static int first_value(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) return node->outputs[i]->id;
  return -1;
}

int *derivation_parts(Arena *arena, const Graph *derivation, int *count) {
  int n = derivation->n_values, *leaders = ARENA_ARRAY(arena, int, n), *parts = ARENA_ARRAY(arena, int, n);
  int *part_of = ARENA_ARRAY(arena, int, n);
  *count = 0;
  for (int i = 0; i < n; i++) {
    leaders[i] = i;
    parts[i] = part_of[i] = -1;
  }
  for (int k = 0; k < derivation->n_nodes; k++) {
    const Node *node = derivation->nodes[k];
    int with = -1;
    for (int i = 0; i < node->n_outputs; i++) join_values(leaders, node->outputs[i], &with);
    for (int i = 0; i < node->n_inputs; i++) join_values(leaders, node->inputs[i], &with);
  }
  for (int k = 0; k < derivation->n_nodes; k++) {
    int id = first_value(derivation->nodes[k]), leader = id < 0 ? -1 : leader_of(leaders, id);
    if (leader >= 0 && part_of[leader] < 0) part_of[leader] = (*count)++;
  }
  for (int i = 0; i < n; i++) parts[i] = part_of[leader_of(leaders, i)];
  return parts;
}
