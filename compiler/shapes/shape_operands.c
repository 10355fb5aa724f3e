/* SPDX-License-Identifier: MIT */
/* Operands that shapes depend on: lists given as an attribute, a constant, or computed from other shapes. */
#include <string.h>

#include "shapes/elements.h"
#include "shapes/shape.h"

/* Longer lists are data, not shapes. */
enum { MAX_ELEMENTS = 1024 };

const Dim **known_elements(Graph *graph, const Value *value) {
  const Ratio *ratios = known_ratios(graph, value);
  if (!ratios) return NULL;
  int64_t count = value_count(value);
  const Dim **elements = ARENA_ARRAY(graph->arena, const Dim *, count);
  for (int64_t i = 0; i < count; i++) {
    if (ratios[i].divisor != 1) return NULL;
    elements[i] = ratios[i].numerator;
  }
  return elements;
}

static bool read_attribute(Graph *graph, const Attribute *attribute, DimList *list) {
  list->given = true;
  list->n = (int)attribute->count;
  list->items = ARENA_ARRAY(graph->arena, const Dim *, attribute->count);
  for (size_t i = 0; i < attribute->count; i++) list->items[i] = dim_const(graph->dims, attribute->ints[i]);
  return true;
}

static bool read_input(Graph *graph, const Node *node, int input, DimList *list) {
  const Value *value = node->inputs[input];
  if (value->rank > 1) return shape_error(node, "input %d must be a list, found %s", input, shape_text(graph, value));
  list->items = known_elements(graph, value);
  if (!list->items)
    return shape_unsupported(node,
                             "input %d (`%.200s`) must be known at compile time: a constant%s, or computed from "
                             "shapes",
                             input, value->name, freeze_hint(graph, value));
  list->given = true;
  list->n = (int)value_count(value);
  return true;
}

bool operand_dims(Graph *graph, const Node *node, AttributeName attribute, int input, DimList *list) {
  const Attribute *given = attribute ? node_attribute(node, attribute) : NULL;
  bool has_input = input >= 0 && node_input(node, input);
  *list = (DimList){0};
  if (given && has_input)
    return shape_error(node, "`%s` is given both as an attribute and as input %d; give one", attribute_name(attribute),
                       input);
  if (given && given->count > MAX_ELEMENTS)
    return shape_error(node, "`%s` has %zu entries; at most %d are allowed", attribute_name(attribute), given->count,
                       MAX_ELEMENTS);
  if (given) return read_attribute(graph, given, list);
  return !has_input || read_input(graph, node, input, list);
}

bool operand_ints(Graph *graph, const Node *node, AttributeName attribute, int input, IntList *list) {
  DimList dims;
  *list = (IntList){0};
  if (!operand_dims(graph, node, attribute, input, &dims)) return false;
  int64_t *items = ARENA_ARRAY(graph->arena, int64_t, dims.n);
  for (int i = 0; i < dims.n; i++) {
    if (!dim_is_const(dims.items[i]))
      return shape_unsupported(node, "entry %d of input %d is %s; it must be a constant here", i, input,
                               dim_text(graph, dims.items[i]));
    items[i] = dim_value(dims.items[i]);
  }
  *list = (IntList){dims.given, dims.n, items};
  return true;
}

bool operand_axes(const Node *node, const IntList *list, int rank, bool marked[MAX_RANK]) {
  memset(marked, 0, MAX_RANK * sizeof *marked);
  for (int i = 0; i < list->n; i++) {
    int axis = check_axis(node, "an entry of axes", list->items[i], rank);
    if (axis < 0) return false;
    if (marked[axis]) return shape_error(node, "axis %d is given twice", axis);
    marked[axis] = true;
  }
  return true;
}
