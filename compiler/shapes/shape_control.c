/* SPDX-License-Identifier: MIT */
/*
 * If, Loop and Scan: a copy of each body is inferred from the incoming types and shapes, so that inference can be
 * repeated. The iterations of a loop and extents that grow in it are data-dependent dims.
 */

#include "ir/bodies.h"
#include "shapes/control.h"
#include "shapes/intervals.h"
#include "shapes/loop_bound.h"
#include "shapes/shape.h"
#include "support/list.h"
#include "support/numbers.h"

/* ---- bodies ---- */

static int formal_inputs(const Node *node) { return node->n_inputs - node->n_captures; }
static int formal_body_inputs(const Node *node, const Graph *body) { return body->n_inputs - node->n_captures; }

static Attribute *body_named(const Node *node, AttributeName name) {
  Attribute *attribute = (Attribute *)node_attribute(node, name);
  if (!attribute->source) attribute->source = attribute->graph;
  return attribute;
}

static void take_type(Value *to, const Value *from) {
  to->dtype = from->dtype;
  to->rank = from->rank;
  to->shape = from->shape;
  to->elements = from->elements;
  to->divisors = from->divisors;
  to->interval = from->interval;
}

static void set_type(Value *value, DType dtype, int rank, const Dim **shape) {
  value->dtype = dtype;
  value->rank = rank;
  value->shape = shape;
}

static Value *constant_like(Graph *body, const Value *outer) {
  Value *value = graph_value(body, outer->name, outer->where);
  take_type(value, outer);
  value->data = outer->data;
  value->is_weight = outer->is_weight;
  value->trained_as = outer->trained_as;
  return value;
}

Graph *body_instantiate(Graph *graph, const Node *node, AttributeName name) {
  Attribute *attribute = body_named(node, name);
  Graph *body = body_clone(graph, attribute->source);
  int formal = formal_body_inputs(node, body), outer = formal_inputs(node);
  Value **arguments = arena_copy(graph->arena, body->inputs, (size_t)body->n_inputs * sizeof *arguments);
  for (int i = 0; i < node->n_captures; i++) {
    const Value *captured = node->inputs[outer + i];
    take_type(body->inputs[formal + i], captured);
    if (captured->data) arguments[formal + i] = constant_like(body, captured);
  }
  for (int n = 0; n < body->n_nodes; n++)
    for (int k = 0; k < body->nodes[n]->n_inputs; k++)
      for (int i = formal; i < body->n_inputs; i++)
        if (body->nodes[n]->inputs[k] == body->inputs[i]) body->nodes[n]->inputs[k] = arguments[i];
  for (int k = 0; k < body->n_outputs; k++)
    for (int i = formal; i < body->n_inputs; i++)
      if (body->outputs[k] == body->inputs[i]) body->outputs[k] = arguments[i];
  return attribute->graph = body;
}

bool body_infer(Graph *body) {
  infer_nodes(body);
  for (int i = 0; i < body->n_outputs; i++)
    if (body->outputs[i]->rank < 0) return false;
  drop_folded_nodes(body);
  graph_renumber(body);
  return true;
}

bool is_inner(const Graph *graph, const Dim *extent, int first) {
  for (int i = first; i < dim_symbol_count(graph->dims); i++)
    if (dim_mentions(extent, dim_symbol_at(graph->dims, i))) return true;
  return false;
}

/* `most`: another bound, or NULL. */
static const DimSymbol *add_growth(Graph *graph, Control *control, int64_t min, int64_t max, const Dim *most,
                                   const Dim *a, const Dim *b) {
  const DimSymbol *symbol = dim_symbol_within(graph->dims, min, max, most);
  *LIST_ADD(graph->arena, control->growths, control->n_growths, control->growth_capacity) = (Growth){symbol, {a, b}};
  return symbol;
}

/* ---- If ---- */

/* The extent of both branches, or a new dim that the branch taken sets. */
static const Dim *either(Graph *graph, Control *control, const Dim *a, const Dim *b, int first) {
  if (same_dim(a, b) && !is_inner(graph, a, first)) return a;
  int64_t min = min_int(dim_lower(a), dim_lower(b)), max = max_int(dim_upper(a), dim_upper(b));
  if (min == max) return dim_const(graph->dims, min);
  const Dim *most = dim_max(graph->dims, a, b);
  if (is_inner(graph, most, first)) most = NULL;
  return dim_symbol(graph->dims, add_growth(graph, control, min, max, most, a, b));
}

static bool join_outputs(Graph *graph, Node *node, int output, const Value *a, const Value *b, int first) {
  const Dim *shape[MAX_RANK];
  if (a->dtype != b->dtype || a->rank != b->rank)
    return shape_unsupported(node, "output %d is %s or, of the other branch, %s; type and rank must be the same",
                             output, shape_text(graph, a), shape_text(graph, b));
  for (int axis = 0; axis < a->rank; axis++)
    shape[axis] = either(graph, node->control, a->shape[axis], b->shape[axis], first);
  if (output < node->n_outputs && node->outputs[output]) node->outputs[output]->dtype = a->dtype;
  return set_shape(graph, node, output, a->rank, shape);
}

/* One that is not known is no error of this node. */
static bool check_condition(Graph *graph, const Node *node, const Value *condition) {
  if (condition->rank < 0 || (value_static(condition) && value_count(condition) == 1)) return true;
  return shape_error(node, "the condition must have one element, found %s", shape_text(graph, condition));
}

bool shape_if(Graph *graph, Node *node) {
  static const AttributeName names[] = {ATTR_then_branch, ATTR_else_branch};
  int first = dim_symbol_count(graph->dims);
  Graph *bodies[2];
  bool good = true;
  if (formal_inputs(node) != 1) return shape_error(node, "If has one input, found %d", formal_inputs(node));
  if (!check_condition(graph, node, node->inputs[0])) return false;
  node->control = ARENA_NEW(graph->arena, Control);
  for (int b = 0; b < 2; b++) {
    bodies[b] = body_instantiate(graph, node, names[b]);
    if (formal_body_inputs(node, bodies[b]))
      return shape_error(node, "`%s` has inputs; a branch has none", attribute_name(names[b]));
    if (bodies[b]->n_outputs != node->n_outputs)
      return shape_error(node, "`%s` has %d outputs, the node %d", attribute_name(names[b]), bodies[b]->n_outputs,
                         node->n_outputs);
    good &= body_infer(bodies[b]);
  }
  for (int k = 0; good && k < node->n_outputs; k++)
    good = join_outputs(graph, node, k, bodies[0]->outputs[k], bodies[1]->outputs[k], first);
  return good;
}

/* ---- Loop and Scan ---- */

/* The shape of a carried value at the begin of an iteration. */
typedef struct Carried {
  const Dim *shape[MAX_RANK];
  const Growth *growth[MAX_RANK]; /* of axes that grow; else NULL */
} Carried;

typedef struct LoopShapes {
  Graph *graph, *body;
  Node *node;
  Control *control;
  Carried *carried;
  bool grows;       /* more extents grow than when the body was inferred */
  bool along_first; /* of a Scan: its inputs are scanned along their first axes */
} LoopShapes;

static const Value *initial(const LoopShapes *loop, int k) {
  return loop->node->inputs[loop->control->first_carried + k];
}

static void start_carried(LoopShapes *loop) {
  loop->carried = ARENA_ARRAY(loop->graph->arena, Carried, loop->control->n_carried);
  for (int k = 0; k < loop->control->n_carried; k++)
    for (int axis = 0; axis < initial(loop, k)->rank; axis++)
      loop->carried[k].shape[axis] = initial(loop, k)->shape[axis];
}

/* What an iteration adds to the extent, or adds at most where only its data tell. */
static const Dim *added(DimTable *dims, const Dim *before, const Dim *after) {
  const DimSymbol *symbol = dim_as_symbol(after);
  return dim_sub(dims, symbol && symbol->most ? symbol->most : after, before);
}

/* An extent that grows by a constant in each iteration, or by as much at most, from `before`. NULL if it is not
 * bounded. */
static const Growth *grow(LoopShapes *loop, const Dim *before, const Dim *after) {
  DimTable *dims = loop->graph->dims;
  const Dim *more = added(dims, before, after);
  bool always = same_dim(more, dim_sub(dims, after, before));
  int64_t most, all;
  if (!dim_is_const(more) || dim_value(more) < 0 || loop->control->most == MAX_ITERATIONS) return NULL;
  if (__builtin_mul_overflow(dim_value(more), loop->control->most, &all) ||
      __builtin_add_overflow(all, dim_upper(before), &most) || most > INT32_MAX)
    return NULL;
  const DimSymbol *symbol =
      add_growth(loop->graph, loop->control, always ? dim_lower(before) : 0, most, NULL, before, NULL);
  Growth *growth = &loop->control->growths[loop->control->n_growths - 1];
  growth->value[1] = dim_add(dims, dim_symbol(dims, symbol), more);
  return arena_copy(loop->graph->arena, growth, sizeof *growth);
}

/* What would bound the iterations, for messages. */
static const char *unbounded_text(const LoopShapes *loop) {
  const Value *trip = loop->node->inputs[0];
  if (!trip || known_elements(loop->graph, trip))
    return "; nothing bounds them: a trip count does, or a condition like i < limit where the limit has a maximum";
  return arena_format(loop->graph->arena,
                      "; their number (input 0, `%.200s`) must be known at compile time: a constant%s, computed from "
                      "shapes, or an integer that has a maximum: %s",
                      trip->name, freeze_hint(loop->graph, trip), interval_hint);
}

/* Where an iteration's data tell how much is added, the extent behind it is a dim of this copy of the body. */
static bool settle_found(LoopShapes *loop, const Growth *growth, const Dim *after) {
  DimTable *dims = loop->graph->dims;
  const Dim *symbol = dim_symbol(dims, growth->symbol);
  if (!dim_as_symbol(after) || added(dims, symbol, after) != dim_sub(dims, growth->value[1], symbol)) return false;
  for (int g = 0; g < loop->control->n_growths; g++)
    if (loop->control->growths[g].symbol == growth->symbol) loop->control->growths[g].value[1] = after;
  return true;
}

static bool settle_axis(LoopShapes *loop, int k, int axis, const Value *out) {
  Carried *carried = &loop->carried[k];
  const Dim *wanted = carried->growth[axis] ? carried->growth[axis]->value[1] : carried->shape[axis];
  if (same_dim(out->shape[axis], wanted)) return true;
  if (carried->growth[axis] && settle_found(loop, carried->growth[axis], out->shape[axis])) return true;
  const Growth *growth = carried->growth[axis] ? NULL : grow(loop, carried->shape[axis], out->shape[axis]);
  if (!growth)
    return shape_unsupported(loop->node,
                             "what is carried goes in as %s and comes out as %s; its shape must stay, or grow by at "
                             "most a constant in a bounded number of iterations%s",
                             shape_text(loop->graph, initial(loop, k)), shape_text(loop->graph, out),
                             loop->control->most == MAX_ITERATIONS ? unbounded_text(loop) : "");
  carried->growth[axis] = growth;
  carried->shape[axis] = dim_symbol(loop->graph->dims, growth->symbol);
  return loop->grows = true;
}

static bool settle_carried(LoopShapes *loop, int k, const Value *out) {
  const Value *in = initial(loop, k);
  if (in->dtype != out->dtype || in->rank != out->rank)
    return shape_unsupported(loop->node,
                             "what is carried goes in as %s and comes out as %s; type and rank must be the "
                             "same",
                             shape_text(loop->graph, in), shape_text(loop->graph, out));
  for (int axis = 0; axis < out->rank; axis++)
    if (!settle_axis(loop, k, axis, out)) return false;
  return true;
}

/* The types of the body's leading and scanned inputs. */
typedef void SetInputs(LoopShapes *loop);

static bool infer_loop(LoopShapes *loop, SetInputs *set_inputs, int first_output) {
  Control *control = loop->control;
  for (int attempt = 0; attempt < 2; attempt++) {
    const int before = error_count();
    loop->body = body_instantiate(loop->graph, loop->node, ATTR_body);
    loop->grows = false;
    set_inputs(loop);
    for (int k = 0; k < control->n_carried; k++)
      set_type(loop->body->inputs[control->n_leading + k], initial(loop, k)->dtype, initial(loop, k)->rank,
               arena_copy(loop->graph->arena, loop->carried[k].shape, sizeof loop->carried[k].shape));
    if (!body_infer(loop->body) || error_count() > before || !inputs_known(loop->node)) return false;
    for (int k = 0; k < control->n_carried; k++)
      if (!settle_carried(loop, k, loop->body->outputs[first_output + k])) return false;
    if (!loop->grows) return true;
  }
  return shape_unsupported(loop->node, "the shapes of what is carried do not settle");
}

static void set_carried_outputs(LoopShapes *loop) {
  for (int k = 0; k < loop->control->n_carried && k < loop->node->n_outputs; k++) {
    if (!loop->node->outputs[k]) continue;
    loop->node->outputs[k]->dtype = initial(loop, k)->dtype;
    set_shape(loop->graph, loop->node, k, initial(loop, k)->rank, loop->carried[k].shape);
  }
}

/* One slice an iteration, `count` of them. */
static bool set_collected(LoopShapes *loop, int output, const Value *slice, const Dim *count) {
  const Dim *shape[MAX_RANK + 1] = {count};
  if (slice->rank == MAX_RANK)
    return shape_unsupported(loop->node, "output %d would have rank %d", output, MAX_RANK + 1);
  for (int axis = 0; axis < slice->rank; axis++) {
    shape[axis + 1] = slice->shape[axis];
    if (is_inner(loop->graph, slice->shape[axis], loop->control->counter->index))
      return shape_unsupported(loop->node, "iterations give slices of different shapes, %s, to output %d",
                               shape_text(loop->graph, slice), output);
  }
  if (output >= loop->node->n_outputs || !loop->node->outputs[output]) return true;
  loop->node->outputs[output]->dtype = slice->dtype;
  return set_shape(loop->graph, loop->node, output, slice->rank + 1, shape);
}

/* `trip` may be NULL; `most` is another bound. */
static Control *new_loop(Graph *graph, Node *node, const Dim *trip, int64_t most) {
  Control *control = node->control = ARENA_NEW(graph->arena, Control);
  most = max_int(0, min_int(min_int(most, MAX_ITERATIONS), trip ? dim_upper(trip) : MAX_ITERATIONS));
  control->is_loop = true;
  control->trip = trip;
  control->most = most;
  const Dim *last = trip ? dim_sub(graph->dims, trip, dim_const(graph->dims, 1)) : NULL;
  control->counter = dim_symbol_within(graph->dims, 0, max_int(0, most - 1), last);
  control->count = dim_symbol_own(graph->dims, DIM_DATA_DEPENDENT, 0, most);
  return control;
}

/* ---- Loop ---- */

static const Dim *known_trip(Graph *graph, const Node *node) {
  const Value *limit = node->inputs[0];
  const Dim **elements = limit ? known_elements(graph, limit) : NULL;
  return elements ? dim_max(graph->dims, dim_const(graph->dims, 0), elements[0]) : NULL;
}

/* Iterations that the condition and the trip count of any run allow. */
static int64_t most_iterations(Graph *graph, const Node *node, const Graph *body) {
  int64_t most = most_by_condition(graph, node, body);
  return node->inputs[0] ? min_int(most, value_interval(graph, node->inputs[0]).most) : most;
}

static void set_loop_inputs(LoopShapes *loop) {
  Graph *graph = loop->graph;
  Value *number = loop->body->inputs[0], *condition = loop->body->inputs[1];
  set_type(number, RNNCC_I64, 0, NULL);
  number->elements = ARENA_ARRAY(graph->arena, const Dim *, 1);
  number->elements[0] = dim_symbol(graph->dims, loop->control->counter);
  set_type(condition, RNNCC_BOOL, 0, NULL);
  if (loop->node->inputs[1]) take_type(condition, loop->node->inputs[1]);
}

/* What is collected is as long as there are iterations. */
static bool refuse_to_collect(const LoopShapes *loop) {
  return shape_unsupported(loop->node, "it collects an output of all iterations%s", unbounded_text(loop));
}

static bool set_loop_outputs(LoopShapes *loop) {
  const Control *control = loop->control;
  const Dim *count = loop_count(loop->graph, control);
  if (!control->trip && control->most == MAX_ITERATIONS && control->n_collected) return refuse_to_collect(loop);
  set_carried_outputs(loop);
  for (int k = 0; k < control->n_collected; k++)
    if (!set_collected(loop, control->n_carried + k, loop->body->outputs[1 + control->n_carried + k], count))
      return false;
  return true;
}

bool shape_loop(Graph *graph, Node *node) {
  const Graph *source = body_named(node, ATTR_body)->source;
  int n_carried = formal_inputs(node) - 2, n_collected = source->n_outputs - 1 - n_carried;
  if (n_carried < 0) return shape_error(node, "Loop has at least 2 inputs, found %d", formal_inputs(node));
  if (formal_body_inputs(node, source) != 2 + n_carried)
    return shape_error(node, "the body has %d inputs; expected %d: as many as the node",
                       formal_body_inputs(node, source), 2 + n_carried);
  if (n_collected < 0 || node->n_outputs > n_carried + n_collected)
    return shape_error(node, "the body has %d outputs; expected at least %d: a condition, and those of the node",
                       source->n_outputs, 1 + (int)max_int(node->n_outputs, n_carried));
  if (!check_scalar(graph, node, 0)) return false;
  if (node->inputs[1] && !check_condition(graph, node, node->inputs[1])) return false;
  LoopShapes loop = {.graph = graph,
                     .node = node,
                     .control = new_loop(graph, node, known_trip(graph, node), most_iterations(graph, node, source))};
  loop.control->n_leading = loop.control->first_carried = 2;
  loop.control->n_carried = n_carried;
  loop.control->n_collected = n_collected;
  loop.control->conditional = loop_is_conditional(node, source);
  if (!node->inputs[0] && !loop.control->conditional) return shape_error(node, "nothing ends the loop");
  start_carried(&loop);
  if (!infer_loop(&loop, set_loop_inputs, 1)) return false;
  const Value *again = loop.body->outputs[0];
  if (again->dtype != RNNCC_BOOL)
    return shape_error(node, "the body's first output must be a condition, found %s", shape_text(graph, again));
  if (!check_condition(graph, node, again)) return false;
  return set_loop_outputs(&loop);
}

/* ---- Scan ---- */

static void set_scan_inputs(LoopShapes *loop) {
  const Control *control = loop->control;
  for (int k = 0; k < control->n_scanned; k++) {
    const Value *all = loop->node->inputs[control->n_carried + k];
    if (all->rank < 1 || !loop->along_first) continue;
    set_type(loop->body->inputs[control->n_carried + k], all->dtype, all->rank - 1, all->shape + 1);
  }
}

static bool read_directions(const Node *node, Control *control, Arena *arena) {
  static const AttributeName names[] = {ATTR_scan_input_directions, ATTR_scan_output_directions};
  control->backwards = ARENA_ARRAY(arena, bool, control->n_scanned + control->n_collected);
  for (int part = 0; part < 2; part++) {
    const Attribute *given = node_attribute(node, names[part]);
    size_t due = (size_t)(part ? control->n_collected : control->n_scanned);
    if (!given) continue;
    if (given->count != due)
      return shape_error(node, "expected %zu entries of `%s`, found %zu", due, attribute_name(names[part]),
                         given->count);
    for (size_t i = 0; i < due; i++)
      control->backwards[(part ? (size_t)control->n_scanned : 0) + i] = given->ints[i] != 0;
  }
  return true;
}

/* The common length of the scanned inputs; NULL after an error. */
static const Dim *scanned_length(Graph *graph, const Node *node, int first, int n) {
  for (int k = first; k < first + n; k++)
    if (!check_rank(graph, node, k, 1, MAX_RANK)) return NULL;
  for (int k = first + 1; k < first + n; k++)
    if (!same_dim(node->inputs[k]->shape[0], node->inputs[first]->shape[0])) {
      shape_error(node, "%s and %s are scanned together, but differ in length", shape_text(graph, node->inputs[first]),
                  shape_text(graph, node->inputs[k]));
      return NULL;
    }
  return node->inputs[first]->shape[0];
}

bool shape_scan(Graph *graph, Node *node) {
  const Graph *source = body_named(node, ATTR_body)->source;
  int64_t n_scanned = node_int(node, ATTR_num_scan_inputs), n_carried = formal_inputs(node) - n_scanned;
  if (n_scanned < 1 || n_carried < 0)
    return shape_error(node, "`num_scan_inputs` is %lld, and there are %d inputs", (long long)n_scanned,
                       formal_inputs(node));
  if (formal_body_inputs(node, source) != formal_inputs(node) || source->n_outputs < n_carried ||
      node->n_outputs > source->n_outputs)
    return shape_error(node, "the body has %d inputs and %d outputs; the node has %d and %d",
                       formal_body_inputs(node, source), source->n_outputs, formal_inputs(node), node->n_outputs);
  bool known = inputs_known(node);
  const Dim *length = known ? scanned_length(graph, node, (int)n_carried, (int)n_scanned) : NULL;
  if (known && !length) return false;
  LoopShapes loop = {.graph = graph, .node = node, .control = new_loop(graph, node, length, MAX_ITERATIONS)};
  loop.along_first = known || !node_has(node, ATTR_scan_input_axes);
  loop.control->n_carried = (int)n_carried;
  loop.control->n_scanned = (int)n_scanned;
  loop.control->n_collected = source->n_outputs - (int)n_carried;
  if (!read_directions(node, loop.control, graph->arena)) return false;
  start_carried(&loop);
  if (!infer_loop(&loop, set_scan_inputs, 0)) return false;
  set_carried_outputs(&loop);
  for (int k = 0; k < loop.control->n_collected; k++)
    if (!set_collected(&loop, (int)n_carried + k, loop.body->outputs[n_carried + k], length)) return false;
  return true;
}
