/* SPDX-License-Identifier: MIT */
/*
 * --bound: the range of integers which the data decide, such as the frames that a text is spoken in. It bounds
 * what they are the length or the number of, and each run checks it.
 */
#include "load/bound_values.h"

#include <inttypes.h>

#include "ir/bodies.h"
#include "shapes/build.h"

static void read_instead(Node *const *nodes, int n, const Value *value, Value *checked) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < nodes[k]->n_inputs; i++)
      if (nodes[k]->inputs[i] == value) nodes[k]->inputs[i] = checked;
}

/* The check is appended; the nodes are those that come behind it. */
static void bound_value(Graph *graph, const ModelSettings *settings, Value *value, Node *const *nodes, int n) {
  const BoundSetting *bound = value ? settings_bound(settings, value->name) : NULL;
  if (!bound) return;
  const char *option =
      arena_format(graph->arena, "--bound %s=%" PRId64 "..%" PRId64, bound->name, bound->least, bound->most);
  Node *check = graph_node(graph, op_info(OP_ExpectBetween), option, 1, 1);
  check->where = LOCATION_FILE(option);
  check->inputs[0] = value;
  set_attribute(graph, check, attribute_int(ATTR_least, bound->least));
  set_attribute(graph, check, attribute_int(ATTR_most, bound->most));
  graph_set_output(check, 0, graph_value(graph, graph_new_name(graph, option), value->where));
  read_instead(nodes, n, value, check->outputs[0]);
}

void bound_values(Graph *graph, const ModelSettings *settings) {
  Node **nodes;
  if (settings->n_bounds == 0) return;
  int n = graph_take_nodes(graph, &nodes);
  for (int i = 0; i < graph->n_inputs; i++) bound_value(graph, settings, graph->inputs[i], nodes, n);
  for (int k = 0; k < n; k++) {
    Attribute *bodies[MAX_BODIES];
    graph_append(graph, nodes[k]);
    for (int i = 0; i < nodes[k]->n_outputs; i++)
      bound_value(graph, settings, nodes[k]->outputs[i], &nodes[k + 1], n - k - 1);
    for (int i = node_bodies(nodes[k], bodies) - 1; i >= 0; i--) bound_values(bodies[i]->graph, settings);
  }
}
