/* SPDX-License-Identifier: MIT */
/*
 * --bound: the range of integers which the data decide, such as the frames that a text is spoken in. It bounds
 * what they are the length or the number of, and each run checks it.
 */
#include "load/bound_values.h"

#include <inttypes.h>

#include "ir/bodies.h"
#include "shapes/build.h"

/* The check is appended. */
static void bound_value(Graph *graph, const Setting *bound, Value *value) {
  const char *option =
      arena_format(graph->arena, "--bound %s=%" PRId64 "..%" PRId64, bound->name, bound->least, bound->most);
  Value *checked = graph_value(graph, graph_new_name(graph, option), value->where);
  graph_read_instead(graph, 0, value, checked);
  Node *check = graph_node(graph, op_info(OP_ExpectBetween), option, 1, 1);
  check->where = LOCATION_FILE(option);
  check->inputs[0] = value;
  set_attribute(graph, check, attribute_int(ATTR_least, bound->least));
  set_attribute(graph, check, attribute_int(ATTR_most, bound->most));
  graph_set_output(check, 0, checked);
}

void bound_values(Graph *graph, const ModelSettings *settings) {
  int n_nodes = graph->n_nodes, n_values = graph->n_values;
  if (!settings_count(settings, SETTING_BOUND)) return;
  for (int i = 0; i < n_values; i++) {
    const Setting *bound = settings_find(settings, SETTING_BOUND, graph->values[i]->name);
    if (bound && !graph->values[i]->data) bound_value(graph, bound, graph->values[i]);
  }
  for (int n = 0; n < n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    for (int i = node_bodies(graph->nodes[n], bodies) - 1; i >= 0; i--) bound_values(bodies[i]->graph, settings);
  }
  sort_nodes(graph);
}
