/* SPDX-License-Identifier: MIT */
/* The graph for Graphviz: boxes are nodes, edges are values with their shapes. */
#include "emit/unit.h"
#include "ir/op.h"

/* A dot string: escapes quotes and backslashes, drops control characters. */
static void add_label(Text *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c; c++) {
    if (*c == '"' || *c == '\\')
      text_add(out, "\\%c", *c);
    else if (*c < 0x20 || *c == 0x7f)
      text_add(out, "?");
    else
      text_bytes(out, (const char *)c, 1);
  }
}

static void add_shape(Text *out, const Value *value) {
  text_add(out, "%s[", dtype_name(value->dtype));
  for (int i = 0; i < value->rank; i++) {
    if (i) text_add(out, ",");
    dim_print(out, value->shape[i]);
  }
  text_add(out, "]");
}

static void add_end(Text *out, Value *const *values, int count, const char *kind) {
  for (int i = 0; i < count; i++) {
    text_add(out, "  %s%d [shape=ellipse, label=\"", kind, values[i]->id);
    add_label(out, values[i]->name);
    text_add(out, "\"];\n");
  }
}

static void add_edge(Text *out, const Value *value, const char *to) {
  if (value->data) return; /* weights would hide the structure */
  if (value->producer)
    text_add(out, "  n%d -> %s [label=\"", value->producer->id, to);
  else
    text_add(out, "  in%d -> %s [label=\"", value->id, to);
  add_shape(out, value);
  text_add(out, "\"];\n");
}

static void add_node(Text *out, Arena *arena, const Node *node) {
  text_add(out, "  n%d [label=\"", node->id);
  for (int p = 0; p < node->n_prologue; p++) text_add(out, "%s + ", node->prologue[p]->op->name);
  text_add(out, "%s", node->op->name);
  for (int e = 0; e < node->n_epilogue; e++) text_add(out, " + %s", node->epilogue[e]->op->name);
  for (int m = 0; m < node->n_members; m++) text_add(out, " + %s", node->members[m]->op->name);
  if (node->reduction) text_add(out, " > %s", node->reduction->op->name);
  text_add(out, "\\n");
  add_label(out, node->name);
  text_add(out, "\"];\n");
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]) add_edge(out, node->inputs[i], arena_format(arena, "n%d", node->id));
}

Text emit_dot(Graph *graph) {
  Text out = text_new(graph->arena);
  text_add(&out, "digraph model {\n  node [shape=box, fontname=sans];\n  edge [fontname=sans, fontsize=10];\n");
  add_end(&out, graph->inputs, graph->n_inputs, "in");
  for (int i = 0; i < graph->n_states; i++) add_end(&out, &graph->states[i].input, 1, "in");
  add_end(&out, graph->outputs, graph->n_outputs, "out");
  for (int i = 0; i < graph->n_nodes; i++) add_node(&out, graph->arena, graph->nodes[i]);
  for (int i = 0; i < graph->n_outputs; i++)
    add_edge(&out, graph->outputs[i], arena_format(graph->arena, "out%d", graph->outputs[i]->id));
  text_add(&out, "}\n");
  return out;
}
