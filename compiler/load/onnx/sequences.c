/* SPDX-License-Identifier: MIT */
/*
 * Sequences and optional values, as far as they are settled when compiling: which tensors they hold is known at each
 * node, so that no node is left of them. The value of a sequence's name stands for it, and nothing else may read it. Of
 * a sequence that a Loop carries, and that each iteration adds one tensor to, the loop collects these tensors.
 */
#include <string.h>

#include "ir/bodies.h"
#include "ir/tensor.h"
#include "load/onnx/adapt.h"

struct Sequence {
  const Value *name;
  const Value *carried; /* a loop body's input, whose tensors come before the items; or NULL */
  int n;                /* -1: an optional value that holds nothing */
  Value **items;
  Value *collected; /* [tensors, ...]: those behind the items; or NULL */
  Sequence *next;
};

const Sequence *onnx_sequence(const OnnxReader *reader, const Value *value) {
  const Sequence *found = value ? reader->sequences : NULL;
  while (found && found->name != value) found = found->next;
  return found;
}

static bool reads_sequence(const OnnxReader *reader, const Draft *draft) {
  return onnx_sequence(reader, draft_input(draft, 0)) != NULL;
}

/* The value is the name of that sequence. */
static void name_sequence(OnnxReader *reader, const Value *name, Sequence sequence) {
  Sequence *named = arena_copy(reader->arena, &sequence, sizeof sequence);
  if (sequence.n > 0) named->items = arena_copy(reader->arena, sequence.items, (size_t)sequence.n * sizeof(Value *));
  named->name = name;
  named->next = reader->sequences;
  reader->sequences = named;
}

/* The draft's output is that sequence; no node is left. */
static bool become_sequence(OnnxReader *reader, const Draft *draft, Sequence sequence) {
  if (draft->n_outputs > 0 && draft->outputs[0]) name_sequence(reader, draft->outputs[0], sequence);
  return false;
}

static bool become(OnnxReader *reader, const Draft *draft, int n, Value **items) {
  return become_sequence(reader, draft, (Sequence){.n = n, .items = items});
}

/* The draft becomes a copy of the value. */
static bool give(OnnxReader *reader, Draft *draft, Value *value) {
  draft->op = "Identity";
  draft->n_inputs = draft->n_attributes = 0;
  draft_set_input(reader, draft, 0, value);
  return true;
}

static bool not_settled(OnnxReader *reader, const Draft *draft, const char *what) {
  unsupported_add(&reader->unsupported, draft->name, "%s of %s, not settled when compiling,", what, draft->op);
  return false;
}

/* The sequence that is input 0; NULL, and says so, if it is not known. */
static const Sequence *any_sequence(OnnxReader *reader, const Draft *draft) {
  const Sequence *sequence = onnx_sequence(reader, draft_input(draft, 0));
  reader->unsupported.follows |= draft_input(draft, 0) && draft->inputs[0]->refused;
  if (!sequence || sequence->n < 0) not_settled(reader, draft, "a sequence");
  return sequence && sequence->n >= 0 ? sequence : NULL;
}

/* The same of one whose items are all that it holds. */
static const Sequence *sequence_of(OnnxReader *reader, const Draft *draft) {
  const Sequence *sequence = any_sequence(reader, draft);
  if (!sequence || (!sequence->carried && !sequence->collected)) return sequence;
  not_settled(reader, draft, "a sequence");
  return NULL;
}

/* The same of one whose items may come before those that a loop has collected. */
static const Sequence *sequence_outside(OnnxReader *reader, const Draft *draft) {
  const Sequence *sequence = any_sequence(reader, draft);
  return sequence && !sequence->carried ? sequence : sequence_of(reader, draft);
}

static bool not_known(OnnxReader *reader, const Draft *draft, const Value *input) {
  unsupported_add(&reader->unsupported, draft->name,
                  "%s whose input `%.80s` is not known at compile time (--freeze makes an input a constant)", draft->op,
                  input->name);
  return false;
}

/* Reads a position, which counts from the end if it is negative. `n` is how many there are. False after an error. */
static bool read_position(OnnxReader *reader, const Draft *draft, int input, int n, int otherwise, int *position) {
  const Value *given = draft_input(draft, input);
  double number = otherwise;
  if (given && !value_number(given, &number)) return not_known(reader, draft, given);
  if (number < -n || number >= n) {
    error_at(draft->where, EXIT_INVALID, "expected a position from %d to %d in the sequence, found %g", -n, n - 1,
             number);
    return false;
  }
  *position = (int)(number < 0 ? number + n : number);
  return true;
}

/* ---- operators of sequences ---- */

bool adapt_sequence_empty(OnnxReader *reader, Draft *draft) { return become(reader, draft, 0, NULL); }

bool adapt_sequence_construct(OnnxReader *reader, Draft *draft) {
  for (int i = 0; i < draft->n_inputs; i++)
    if (!draft->inputs[i] || onnx_sequence(reader, draft->inputs[i])) return not_settled(reader, draft, "an input");
  return become(reader, draft, draft->n_inputs, draft->inputs);
}

/* One more item of what a loop carries. */
static bool append_to_carried(OnnxReader *reader, const Draft *draft, const Sequence *carried) {
  Sequence longer = *carried;
  longer.items = ARENA_ARRAY(reader->arena, Value *, carried->n + 1);
  for (int i = 0; i < carried->n; i++) longer.items[i] = carried->items[i];
  longer.items[longer.n++] = draft->inputs[1];
  return become_sequence(reader, draft, longer);
}

bool adapt_sequence_insert(OnnxReader *reader, Draft *draft) {
  const Sequence *carried = onnx_sequence(reader, draft_input(draft, 0));
  Value *item = draft_input(draft, 1);
  if (carried && carried->carried && item && !draft_input(draft, 2)) return append_to_carried(reader, draft, carried);
  const Sequence *sequence = sequence_of(reader, draft);
  int at;
  if (!sequence || !item) return sequence ? not_settled(reader, draft, "an input") : false;
  /* Before place n, the end, nothing stands: -1 is the place before the last one. */
  double given = 0;
  bool from_end = draft_input(draft, 2) && value_number(draft_input(draft, 2), &given) && given < 0;
  if (!read_position(reader, draft, 2, sequence->n + !from_end, sequence->n, &at)) return false;
  Value **items = ARENA_ARRAY(reader->arena, Value *, sequence->n + 1);
  for (int i = 0; i <= sequence->n; i++)
    items[i] = i < at ? sequence->items[i] : i > at ? sequence->items[i - 1] : item;
  return become(reader, draft, sequence->n + 1, items);
}

bool adapt_sequence_erase(OnnxReader *reader, Draft *draft) {
  const Sequence *sequence = sequence_of(reader, draft);
  int at;
  if (!sequence || !read_position(reader, draft, 1, sequence->n, sequence->n - 1, &at)) return false;
  Value **items = ARENA_ARRAY(reader->arena, Value *, sequence->n);
  for (int i = 0; i < sequence->n - 1; i++) items[i] = sequence->items[i + (i >= at)];
  return become(reader, draft, sequence->n - 1, items);
}

/* A position that the run knows is an index of what a loop has collected. */
static bool at_collected(OnnxReader *reader, Draft *draft, const Sequence *sequence) {
  Value *position = draft_input(draft, 1);
  if (!position || sequence->n) return not_settled(reader, draft, "a sequence");
  draft->op = "Gather";
  draft_set_input(reader, draft, 0, sequence->collected);
  return true;
}

bool adapt_sequence_at(OnnxReader *reader, Draft *draft) {
  const Sequence *sequence = sequence_outside(reader, draft);
  int at;
  if (sequence && sequence->collected) return at_collected(reader, draft, sequence);
  return sequence && read_position(reader, draft, 1, sequence->n, 0, &at) && give(reader, draft, sequence->items[at]);
}

/* The first of `rank` axes becomes number `axis`. */
static Value *with_first_axis_at(OnnxReader *reader, const Draft *draft, Value *x, int rank, int64_t axis) {
  int64_t *perm = ARENA_ARRAY(reader->arena, int64_t, rank);
  for (int k = 0; k < rank; k++) perm[k] = k < axis ? k + 1 : k == axis ? 0 : k;
  const Attribute order = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = (size_t)rank, .ints = perm};
  return draft_node_with(reader, draft, "Transpose", 1, &x, 1, &order, NULL);
}

/* The extents of axes `start` on, before axis `end` where that is given. */
static Value *extents(OnnxReader *reader, const Draft *draft, Value *x, int64_t start, int64_t end) {
  const Attribute range[] = {{.name = "start", .kind = ATTRIBUTE_INT, .i = start},
                             {.name = "end", .kind = ATTRIBUTE_INT, .i = end}};
  return draft_node_with(reader, draft, "Shape", 1, &x, end < INT64_MAX ? 2 : 1, range, NULL);
}

bool adapt_sequence_length(OnnxReader *reader, Draft *draft) {
  const Sequence *sequence = sequence_outside(reader, draft);
  if (!sequence) return false;
  Value *items = draft_number(reader, draft, RNNCC_I64, sequence->n);
  if (!sequence->collected) return give(reader, draft, items);
  Value *inputs[] = {extents(reader, draft, sequence->collected, 0, 1), draft_ints(reader, draft, 0, NULL)};
  Value *sum[] = {items, draft_node(reader, draft, "Reshape", 2, inputs)};
  return give(reader, draft, draft_node(reader, draft, "Add", 2, sum));
}

/* Those that a loop has collected, one behind the other along the axis, which is one of their own or a new one. NULL,
 * and says so, if that needs a rank that is not known. */
static Value *collected_along(OnnxReader *reader, const Draft *draft, Value *collected, int64_t axis, bool new_axis) {
  if (axis != 0) {
    int rank = draft_rank(reader, draft, collected) - 1; /* of one of them */
    if (axis < 0) axis += rank + new_axis;
    if (rank < 0 || axis < 0 || axis > rank - !new_axis)
      return not_settled(reader, draft, "the rank of a sequence's tensors"), NULL;
    collected = with_first_axis_at(reader, draft, collected, rank + 1, axis);
  }
  if (new_axis) return collected;
  const int64_t merged = -1;
  Value *parts[] = {extents(reader, draft, collected, 0, axis), draft_ints(reader, draft, 1, &merged),
                    extents(reader, draft, collected, axis + 2, INT64_MAX)};
  const Attribute first = {.name = "axis", .kind = ATTRIBUTE_INT};
  Value *target[] = {collected, draft_node_with(reader, draft, "Concat", 3, parts, 1, &first, NULL)};
  return draft_node(reader, draft, "Reshape", 2, target);
}

bool adapt_concat_from_sequence(OnnxReader *reader, Draft *draft) {
  const Sequence *sequence = sequence_outside(reader, draft);
  if (!sequence) return false;
  const int64_t axis = draft_int(draft, "axis", 0);
  bool new_axis = draft_int(draft, "new_axis", 0) != 0;
  draft->op = "Concat";
  draft->n_inputs = 0;
  for (int i = 0; i < sequence->n; i++) {
    Value *longer[] = {sequence->items[i], new_axis ? draft_ints(reader, draft, 1, &axis) : NULL};
    draft_set_input(reader, draft, i, new_axis ? draft_node(reader, draft, "Unsqueeze", 2, longer) : longer[0]);
  }
  if (sequence->collected) {
    Value *others = collected_along(reader, draft, sequence->collected, axis, new_axis);
    if (!others) return false;
    draft_set_input(reader, draft, sequence->n, others);
  }
  draft_drop(draft, "new_axis");
  return true;
}

/* ---- SequenceMap ---- */

/* The body, if it has as many inputs and outputs as the node and can be copied; else NULL, and says so. */
static Graph *body_to_map(OnnxReader *reader, const Draft *draft) {
  enum { MOST_COPIED = 1 << 20 };
  const Attribute *given = draft_attribute(draft, "body");
  Graph *body = given && given->kind == ATTRIBUTE_GRAPH ? given->graph : NULL;
  if (!body || body->n_inputs != draft->n_inputs || body->n_outputs < draft->n_outputs) {
    error_at(draft->where, EXIT_INVALID,
             "expected a `body` with an input for each of SequenceMap's %d, and as many outputs", draft->n_inputs);
    return NULL;
  }
  const Sequence *first = onnx_sequence(reader, draft->inputs[0]);
  if (first->n > MOST_COPIED / (body->n_nodes + 1))
    fatal_at(draft->where, EXIT_LIMIT, "SequenceMap would have more than %d nodes", MOST_COPIED);
  return body;
}

/* What the body's inputs are for item k: those of sequences, and tensors as they are. False, and says so, for a
 * sequence of another length. */
static bool items_at(OnnxReader *reader, const Draft *draft, int k, int n, Value **arguments) {
  for (int i = 0; i < draft->n_inputs; i++) {
    const Sequence *sequence = onnx_sequence(reader, draft->inputs[i]);
    bool settled = !sequence || (sequence->n == n && !sequence->carried && !sequence->collected);
    if (!settled || !draft->inputs[i]) return not_settled(reader, draft, "a sequence of as many tensors as the first");
    arguments[i] = sequence ? sequence->items[k] : draft->inputs[i];
  }
  return true;
}

static bool map_items(OnnxReader *reader, const Draft *draft, const Graph *body, int n, Value **results) {
  Graph *graph = draft->scope->graph;
  Node around = {.attributes = draft->attributes, .n_attributes = draft->n_attributes};
  node_capture(graph, &around); /* what the body reads around itself becomes inputs behind its own */
  Value **arguments = ARENA_ARRAY(reader->arena, Value *, draft->n_inputs + around.n_captures);
  for (int i = 0; i < around.n_captures; i++) arguments[draft->n_inputs + i] = around.inputs[i];
  for (int k = 0; k < n; k++) {
    Node **nodes = ARENA_ARRAY(reader->arena, Node *, body->n_nodes);
    if (!items_at(reader, draft, k, n, arguments)) return false;
    int n_nodes = body_copy_nodes(graph, body, arguments, nodes, &results[k * body->n_outputs]);
    for (int i = 0; i < n_nodes; i++) graph_append(graph, nodes[i]);
  }
  return true;
}

/* The body for each item; its outputs are the items of the node's sequences. */
bool adapt_sequence_map(OnnxReader *reader, Draft *draft) {
  const Sequence *first = sequence_of(reader, draft);
  const Graph *body = first ? body_to_map(reader, draft) : NULL;
  if (!body) return false;
  int n = first->n;
  Value **results = ARENA_ARRAY(reader->arena, Value *, n * body->n_outputs);
  if (!map_items(reader, draft, body, n, results)) return false;
  for (int o = 0; o < draft->n_outputs; o++) {
    Value **items = ARENA_ARRAY(reader->arena, Value *, n);
    for (int k = 0; k < n; k++) items[k] = results[k * body->n_outputs + o];
    if (draft->outputs[o]) name_sequence(reader, draft->outputs[o], (Sequence){.n = n, .items = items});
  }
  return false;
}

/* ---- SplitToSequence ---- */

/* As many parts as `split` lists. */
static int64_t *listed_extents(OnnxReader *reader, const Value *split, int *n) {
  *n = (int)value_count(split);
  int64_t *extents = ARENA_ARRAY(reader->arena, int64_t, *n);
  for (int i = 0; i < *n; i++) extents[i] = value_integer(split, i);
  return extents;
}

/* Parts of one extent; the last one may be shorter. */
static int64_t *even_extents(OnnxReader *reader, int64_t extent, int64_t part, int *n) {
  *n = (int)((extent + part - 1) / part);
  int64_t *extents = ARENA_ARRAY(reader->arena, int64_t, *n);
  for (int i = 0; i < *n; i++) extents[i] = extent - i * part < part ? extent - i * part : part;
  return extents;
}

/* NULL, and says so, if they are not known. */
static int64_t *part_extents(OnnxReader *reader, const Draft *draft, const Dim *extent, int *n) {
  const Value *split = draft_input(draft, 1);
  if (split && !split->data) return not_known(reader, draft, split), NULL;
  if (split && split->rank == 1 && value_count(split) <= INT16_MAX) return listed_extents(reader, split, n);
  int64_t part = split ? value_integer(split, 0) : 1;
  bool known = dim_is_const(extent) && part > 0 && dim_value(extent) / part < INT16_MAX;
  if (!known) return not_settled(reader, draft, "the number of parts"), NULL;
  return even_extents(reader, dim_value(extent), part, n);
}

static void split_into(OnnxReader *reader, const Draft *draft, int64_t axis, int n, const int64_t *extents,
                       Value **parts) {
  Value *inputs[] = {draft->inputs[0], draft_ints(reader, draft, (size_t)n, extents)};
  Draft split = {.op = "Split", .name = draft->name, .where = draft->where, .scope = draft->scope, .inputs = inputs};
  split.n_inputs = 2;
  split.n_outputs = n;
  split.outputs = parts;
  for (int i = 0; i < n; i++) parts[i] = graph_value(draft->scope->graph, draft->name, draft->where);
  draft_set_int(reader, &split, "axis", axis);
  onnx_commit(reader, &split);
}

bool adapt_split_to_sequence(OnnxReader *reader, Draft *draft) {
  Value *x = draft_input(draft, 0);
  int rank = x ? draft_rank(reader, draft, x) : -1, n = 0;
  int64_t axis = draft_int(draft, "axis", 0), place = axis < 0 ? axis + rank : axis;
  if (rank > 0 && (place < 0 || place >= rank)) {
    error_at(draft->where, EXIT_INVALID, "expected an axis from %d to %d, found %lld", -rank, rank - 1,
             (long long)axis);
    return false;
  }
  if (rank < 1) return not_settled(reader, draft, "the rank");
  int64_t *extents = part_extents(reader, draft, x->shape[place], &n);
  if (!extents) return false;
  Value **parts = ARENA_ARRAY(reader->arena, Value *, n);
  if (n) split_into(reader, draft, axis, n, extents, parts);
  bool shorter = draft_int(draft, "keepdims", 1) == 0 && !draft_input(draft, 1);
  for (int i = 0; i < n && shorter; i++) {
    Value *squeezed[] = {parts[i], draft_ints(reader, draft, 1, &axis)};
    parts[i] = draft_node(reader, draft, "Squeeze", 2, squeezed);
  }
  return become(reader, draft, n, parts);
}

/* ---- optional values, and copies ---- */

bool adapt_optional(OnnxReader *reader, Draft *draft) {
  if (!draft_input(draft, 0)) return become(reader, draft, -1, NULL);
  return adapt_same_sequence(reader, draft) && give(reader, draft, draft->inputs[0]);
}

bool adapt_optional_has_element(OnnxReader *reader, Draft *draft) {
  const Value *given = draft_input(draft, 0);
  const Sequence *sequence = onnx_sequence(reader, given);
  bool holds = given && (!sequence || sequence->n >= 0);
  return give(reader, draft, draft_number(reader, draft, RNNCC_BOOL, holds));
}

bool adapt_optional_get_element(OnnxReader *reader, Draft *draft) {
  const Sequence *sequence = onnx_sequence(reader, draft_input(draft, 0));
  if (draft_input(draft, 0) && (!sequence || sequence->n >= 0)) return adapt_optional(reader, draft);
  error_at(draft->where, EXIT_INVALID, "expected an optional value that holds something, found an empty one");
  return false;
}

bool adapt_same_sequence(OnnxReader *reader, Draft *draft) {
  if (!reads_sequence(reader, draft)) return true;
  return become_sequence(reader, draft, *onnx_sequence(reader, draft->inputs[0]));
}

/* ---- loops ---- */

enum { N_LEADING = 2 }; /* of a body's inputs: the iteration, and whether to go on */

void onnx_carry_sequences(OnnxReader *reader, const Draft *draft, const Graph *body) {
  if (strcmp(draft->op, "Loop") != 0 || body->n_inputs != draft->n_inputs) return;
  for (int i = N_LEADING; i < draft->n_inputs; i++)
    if (onnx_sequence(reader, draft->inputs[i]))
      name_sequence(reader, body->inputs[i], (Sequence){.carried = body->inputs[i]});
}

bool onnx_is_carried(const OnnxReader *reader, const Graph *body, const Value *value) {
  const Sequence *sequence = onnx_sequence(reader, value);
  for (int i = 0; sequence && i < body->n_inputs; i++)
    if (body->inputs[i] == sequence->carried) return true;
  return false;
}

/* The node gets an output for each of the body, but the condition. */
static void lengthen_outputs(OnnxReader *reader, Draft *draft, const Graph *body) {
  Value **outputs = ARENA_ARRAY(reader->arena, Value *, body->n_outputs);
  for (int i = 0; i < draft->n_outputs && i < body->n_outputs; i++) outputs[i] = draft->outputs[i];
  draft->outputs = outputs;
  draft->n_outputs = body->n_outputs - 1;
}

/* The item that each iteration adds to input `i` is collected. False, and says so, where it adds another number. */
static bool collect_items(OnnxReader *reader, Draft *draft, Graph *body, int i) {
  const Sequence *before = onnx_sequence(reader, draft->inputs[i]);
  const Sequence *after = onnx_sequence(reader, body->outputs[i - 1]);
  bool adds_one = after && after->carried == body->inputs[i] && after->n == 1;
  if (!adds_one || before->n < 0 || before->carried || before->collected)
    return not_settled(reader, draft, "a sequence");
  int output = i - N_LEADING;
  Sequence all = *before;
  Value *name = draft->outputs[output];
  all.collected = graph_value(draft->scope->graph, draft->name, draft->where);
  if (name) name_sequence(reader, name, all);
  values_remove(draft->inputs, &draft->n_inputs, i);
  values_remove(body->inputs, &body->n_inputs, i);
  values_remove(body->outputs, &body->n_outputs, i - 1);
  values_remove(draft->outputs, &draft->n_outputs, output);
  body->outputs[body->n_outputs++] = after->items[0];
  draft->outputs[draft->n_outputs++] = all.collected;
  return true;
}

bool adapt_loop(OnnxReader *reader, Draft *draft) {
  const Attribute *given = draft_attribute(draft, "body");
  Graph *body = given && given->kind == ATTRIBUTE_GRAPH ? given->graph : NULL;
  if (!body || body->n_inputs != draft->n_inputs || body->n_outputs < draft->n_inputs - 1) return true;
  for (int i = draft->n_inputs - 1; i >= N_LEADING; i--) {
    if (!onnx_sequence(reader, draft->inputs[i])) continue;
    if (draft->n_outputs < body->n_outputs - 1) lengthen_outputs(reader, draft, body);
    if (!collect_items(reader, draft, body, i)) return false;
  }
  return true;
}
