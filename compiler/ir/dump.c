/* SPDX-License-Identifier: MIT */
/* The graph as text, one line a value and a node, in an order that is stable under changes elsewhere. */
#include "ir/family.h"
#include "ir/graph.h"
#include "ir/op.h"

static void dump_name(Text *out, const Value *value) {
  if (value)
    text_add(out, "t%d", value->id);
  else
    text_add(out, "_");
}

static void dump_shape(Text *out, const Value *value) {
  text_add(out, "%s", value->dtype == RNNCC_NONE ? "?" : dtype_name(value->dtype));
  if (value->rank < 0 || (value->rank > 0 && !value->shape)) return;
  dims_print(out, value->rank, value->shape);
  if (value->channel_block) text_add(out, " NC%s%dc", value->rank == 3 ? "W" : "HW", value->channel_block);
}

void value_dump_place(Text *out, const char *before, const Value *value) {
  static const char *const names[] = {
      [STORAGE_INPUT] = "input",     [STORAGE_OUTPUT] = "output",       [STORAGE_ARENA] = "arena",
      [STORAGE_WEIGHTS] = "weights", [STORAGE_PARAMETER] = "parameter", [STORAGE_GRADIENT] = "gradient",
      [STORAGE_BLOCK] = "block"};
  if (value->storage == STORAGE_NONE) return;
  text_add(out, "%s%s", before, names[value->storage]);
  if (value->storage == STORAGE_INPUT || value->storage == STORAGE_OUTPUT || value->storage == STORAGE_BLOCK)
    text_add(out, " %d", value->slot);
  else
    text_add(out, "+%lld", (long long)value->offset);
}

static void dump_value(Text *out, const char *kind, const Value *value) {
  text_add(out, "%s ", kind);
  dump_name(out, value);
  text_add(out, ": ");
  dump_shape(out, value);
  if (value->view_of) {
    text_add(out, " view of ");
    dump_name(out, value->view_of);
    if (value_is_part(value)) text_add(out, " from block %lld", (long long)value->first_block);
  }
  value_dump_place(out, " @", value);
  text_add(out, " ");
  text_quoted(out, value->name);
  text_add(out, "\n");
}

static void dump_list(Text *out, const Attribute *attribute) {
  text_add(out, "[");
  for (size_t i = 0; i < attribute->count; i++) {
    if (i) text_add(out, " ");
    if (attribute->kind == ATTRIBUTE_INTS)
      text_add(out, "%lld", (long long)attribute->ints[i]);
    else if (attribute->kind == ATTRIBUTE_FLOATS)
      text_add(out, "%.9g", attribute->floats[i]);
    else
      text_quoted(out, attribute->strings[i]);
  }
  text_add(out, "]");
}

static void dump_attribute(Text *out, const Attribute *attribute) {
  text_add(out, " %s=", attribute->name);
  switch (attribute->kind) {
  case ATTRIBUTE_INT:
    text_add(out, "%lld", (long long)attribute->i);
    break;
  case ATTRIBUTE_FLOAT:
    text_add(out, "%.9g", attribute->f);
    break;
  case ATTRIBUTE_STRING:
  case ATTRIBUTE_WORD:
  case ATTRIBUTE_TYPE:
    text_quoted(out, attribute->s);
    break;
  case ATTRIBUTE_TENSOR:
    dump_shape(out, attribute->tensor);
    break;
  case ATTRIBUTE_GRAPH:
    text_add(out, "graph of %d nodes", attribute->graph->n_nodes);
    break;
  default:
    dump_list(out, attribute);
  }
}

/* A node folded into another, before (`<`) or after (`|`) it. */
static void dump_folded(Text *out, const Node *step, const char *place) {
  text_add(out, " %s %s", place, step->op->name);
  for (int i = 1; i < step->n_inputs; i++) {
    text_add(out, " ");
    dump_name(out, step->inputs[i]);
  }
  for (int i = 0; i < step->n_attributes; i++) dump_attribute(out, &step->attributes[i]);
}

static void dump_names(Text *out, Value *const *values, int n) {
  for (int i = 0; i < n; i++) {
    if (i) text_add(out, ", ");
    dump_name(out, values[i]);
  }
}

/* What passes have decided for the node. */
static void dump_decisions(Text *out, const Graph *graph, const Node *node) {
  static const char *const layouts[] = {[LAYOUT_ROW_MAJOR] = "row-major",
                                        [LAYOUT_NARROW] = "narrow blocks",
                                        [LAYOUT_BLOCKED] = "blocks",
                                        [LAYOUT_WIDE] = "wide blocks",
                                        [LAYOUT_ANY] = "any layout"};
  const KernelFamily *family = node->op->family;
  if (is_blocked(node))
    text_add(out, "  reads %s, writes %s\n", layouts[node->layout.reads], layouts[node->layout.writes]);
  if (node->exact) text_add(out, "  exact\n");
  const Schedule *schedule = node->schedule;
  if (schedule && schedule->text) text_add(out, "  schedule %s\n", schedule->text);
  if (schedule && schedule->kind)
    text_add(out, "  knobs %s\n", schedule_print(graph->arena, schedule->kind, &schedule->knobs));
  if (family && family->dump_knobs) family->dump_knobs(out, graph, node);
}

static void dump_node(Text *out, const Graph *graph, const Node *node) {
  text_add(out, "n%d: ", node->id);
  dump_names(out, node->outputs, node->n_outputs);
  text_add(out, " = %s(", node->op->name);
  dump_names(out, node->inputs, node->n_inputs);
  text_add(out, ")");
  for (int i = 0; i < node->n_attributes; i++) dump_attribute(out, &node->attributes[i]);
  for (int i = 0; i < node->n_epilogue; i++) dump_folded(out, node->epilogue[i], "|");
  if (node->pool) dump_folded(out, node->pool, "|");
  for (int i = 0; i < node->n_prologue; i++) dump_folded(out, node->prologue[i], "<");
  for (int i = 0; i < node->n_members; i++) text_add(out, " + %s", node->members[i]->op->name);
  if (node->reduction) text_add(out, " > %s", node->reduction->op->name);
  text_add(out, " ");
  text_quoted(out, node->name);
  text_add(out, "\n");
  dump_decisions(out, graph, node);
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) dump_value(out, "  value", node->outputs[i]);
  for (int i = 0; i < node->n_packed; i++) dump_value(out, "  packed", node->packed[i]);
  if (node->scratch) dump_value(out, "  scratch", node->scratch);
  if (node->in_place) dump_value(out, "  in place", node->in_place);
}

static void dump_graph(Text *out, const Graph *graph);

static void dump_bodies(Text *out, const Node *node) {
  for (int i = 0; i < node->n_attributes; i++) {
    const Attribute *attribute = &node->attributes[i];
    if (attribute->kind != ATTRIBUTE_GRAPH) continue;
    text_add(out, "n%d.%s {\n", node->id, attribute->name);
    dump_graph(out, attribute->graph);
    text_add(out, "}\n");
  }
}

static void dump_dims(Text *out, const Graph *graph) {
  for (int i = 0; i < dim_symbol_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    text_add(out, "dim d%d: %lld..%lld opt %lld ", i, (long long)symbol->min, (long long)symbol->max,
             (long long)symbol->opt);
    text_quoted(out, symbol->name);
    text_add(out, "\n");
  }
}

static void dump_graph(Text *out, const Graph *graph) {
  for (int i = 0; i < graph->n_values; i++) {
    const Value *value = graph->values[i];
    if (value->is_input) dump_value(out, "input", value);
    if (value_is_constant(value)) dump_value(out, "constant", value);
  }
  for (int i = 0; i < graph->n_nodes; i++) {
    dump_node(out, graph, graph->nodes[i]);
    dump_bodies(out, graph->nodes[i]);
  }
  if (graph->slots)
    text_add(out, "slots %lld of %lld bytes\n", (long long)graph->n_slots, (long long)graph->slot_bytes);
  for (int i = 0; i < graph->n_outputs; i++) text_add(out, "output t%d\n", graph->outputs[i]->id);
  for (int i = 0; i < graph->n_states; i++) {
    const State *state = &graph->states[i];
    text_add(out, "state t%d -> t%d batch axis %d\n", state->input->id, state->output->id, state->batch_axis);
  }
}

void graph_dump(Text *out, const Graph *graph) {
  text_add(out, "graph ");
  text_quoted(out, graph->name);
  text_add(out, "\n");
  dump_dims(out, graph);
  dump_graph(out, graph);
}
