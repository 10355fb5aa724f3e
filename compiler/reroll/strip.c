/* SPDX-License-Identifier: MIT */
#include "reroll/strip.h"

#include <string.h>

#include "ir/cell.h"
#include "shapes/shape.h"
#include "support/list.h"

void strip_passed(const Strip *strip, Trail *trail) {
  if (strip->axis < 0) *LIST_ADD(trail->arena, trail->nodes, trail->n, trail->capacity) = strip->value->producer;
}

/* ---- rows and columns ---- */

static bool is_wide(const Value *value, int axis) { return !dim_equals(value->shape[axis], 1); }
static int last_axis(const Value *value) { return value->rank - 1; }

bool strip_whole(Value *value, Strip *strip) {
  if (value->rank < 1 || value->dtype != RNNCC_F32 || !dim_is_const(value->shape[last_axis(value)])) return false;
  *strip = (Strip){.value = value, .count = dim_value(value->shape[last_axis(value)]), .axis = -1};
  return true;
}

bool strip_is_whole(const Strip *strip) {
  Strip whole;
  return strip_whole(strip->value, &whole) && strip_same(&whole, strip);
}

bool strip_same(const Strip *a, const Strip *b) {
  return a->value == b->value && a->first == b->first && a->count == b->count && a->axis == b->axis &&
         (a->axis < 0 || a->step == b->step);
}

const Dim *strip_rows(Graph *graph, const Strip *strip) {
  const Dim *rows = NULL;
  for (int axis = 0; axis < last_axis(strip->value); axis++) {
    if (axis == strip->axis || !is_wide(strip->value, axis)) continue;
    if (rows) return NULL;
    rows = strip->value->shape[axis];
  }
  return rows ? rows : dim_const(graph->dims, 1);
}

const float *strip_numbers(const Strip *strip) {
  const Value *value = strip->value;
  if (!value->data || value->dtype != RNNCC_F32) return NULL;
  int64_t columns = value->rank ? dim_value(value->shape[last_axis(value)]) : 1;
  const float *numbers = (const float *)value->data + strip->first;
  size_t bytes = (size_t)strip->count * sizeof *numbers;
  for (int64_t row = 1; row < value_count(value) / columns; row++)
    if (memcmp(numbers, numbers + row * columns, bytes) != 0) return NULL;
  return numbers;
}

bool strip_is_zero(const Strip *strip) {
  const float *numbers = strip_numbers(strip);
  for (int64_t i = 0; numbers && i < strip->count; i++)
    if (numbers[i] != 0) return false;
  return numbers != NULL;
}

static int wide_axes_before(const Value *value, int end) {
  int n = 0;
  for (int axis = 0; axis < end; axis++) n += is_wide(value, axis);
  return n;
}

static int wide_axis(const Value *value, int n) {
  int axis = 0;
  while (axis < last_axis(value) && (!is_wide(value, axis) || n-- > 0)) axis++;
  return axis;
}

/* ---- back through one node: false where the strip is made there ---- */

/* The same rows and columns in another shape. */
static bool through_view(Graph *graph, Strip *strip) {
  (void)graph;
  const Value *output = strip->value;
  Value *input = output->producer->inputs[0];
  if (input->rank < 1 || !same_dim(input->shape[last_axis(input)], output->shape[last_axis(output)])) return false;
  int wide = wide_axes_before(output, last_axis(output));
  if (wide_axes_before(input, last_axis(input)) != wide) return false;
  for (int n = 0; n < wide; n++)
    if (!same_dim(input->shape[wide_axis(input, n)], output->shape[wide_axis(output, n)])) return false;
  if (strip->axis >= 0) strip->axis = wide_axis(input, wide_axes_before(output, strip->axis));
  strip->value = input;
  return true;
}

/* The output's extent on `axis` begins at `start` of the input's, and goes on by `stride`. */
static bool move_along(Strip *strip, const Value *input, int axis, int64_t start, int64_t stride) {
  const Value *output = strip->value;
  if (axis == last_axis(output)) {
    strip->first += start;
    return stride == 1;
  }
  if (strip->axis == axis) {
    strip->step = start + stride * strip->step;
    return true;
  }
  if (!is_wide(input, axis)) return true;
  if (strip->axis >= 0 || is_wide(output, axis)) return false;
  strip->axis = axis;
  strip->step = start;
  return true;
}

static bool is_all_of(const SliceAxis *sliced, const Dim *extent) {
  return sliced->step == 1 && dim_equals(sliced->start, 0) && sliced->extent == extent;
}

static bool through_slice(Graph *graph, Strip *strip) {
  Node *node = strip->value->producer;
  Value *input = node->inputs[0];
  SliceAxis axes[MAX_RANK];
  if (!read_slice(graph, node, axes)) bug("the slice was good before");
  for (int axis = 0; axis < input->rank; axis++) {
    if (is_all_of(&axes[axis], input->shape[axis])) continue;
    if (!dim_is_const(axes[axis].start)) return false;
    if (!move_along(strip, input, axis, dim_value(axes[axis].start), axes[axis].step)) return false;
  }
  strip->value = input;
  return true;
}

/* Where a piece begins on the axis along which the pieces were, or will be, one; -1 if that is not known. */
static int64_t begin_of(Value *const *pieces, int n, int axis) {
  int64_t begin = 0;
  for (int i = 0; i < n; i++) {
    if (!dim_is_const(pieces[i]->shape[axis])) return -1;
    begin += dim_value(pieces[i]->shape[axis]);
  }
  return begin;
}

static bool through_split(Graph *graph, Strip *strip) {
  (void)graph;
  const Node *node = strip->value->producer;
  Value *input = node->inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), input->rank);
  int64_t begin = begin_of(node->outputs, strip->value->producer_output, axis);
  if (begin < 0 || !move_along(strip, input, axis, begin, 1)) return false;
  strip->value = input;
  return true;
}

/* Into the one piece that the strip lies in. */
static bool through_concat(Graph *graph, Strip *strip) {
  (void)graph;
  const Node *node = strip->value->producer;
  int axis = normal_axis(node_int(node, ATTR_axis), strip->value->rank);
  bool columns = axis == last_axis(strip->value);
  if (!columns && strip->axis != axis) return false;
  int64_t first = columns ? strip->first : strip->step, end = columns ? first + strip->count : first + 1, begin = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    const Dim *extent = node->inputs[i]->shape[axis];
    if (!dim_is_const(extent) || first < begin) return false;
    int64_t next = begin + dim_value(extent);
    if (first >= begin && end <= next) {
      *(columns ? &strip->first : &strip->step) = first - begin;
      strip->value = node->inputs[i];
      if (!columns && dim_equals(extent, 1)) strip->axis = -1;
      return true;
    }
    begin = next;
  }
  return false;
}

/* The index that a Gather takes; false if it takes several, or one known only at run time. */
static bool single_index(Graph *graph, const Node *node, const Dim *extent, int64_t *index) {
  const Value *indices = node->inputs[1];
  const Dim **known = value_static(indices) && value_count(indices) == 1 ? known_elements(graph, indices) : NULL;
  if (!known || !dim_is_const(known[0])) return false;
  *index = dim_value(known[0]);
  if (*index < 0 && !dim_is_const(extent)) return false;
  if (*index < 0) *index += dim_value(extent);
  return true;
}

static bool through_gather(Graph *graph, Strip *strip) {
  const Node *node = strip->value->producer;
  Value *input = node->inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), input->rank);
  if (strip->axis >= 0 || axis == last_axis(input)) return false;
  int64_t index;
  if (!single_index(graph, node, input->shape[axis], &index)) return false;
  strip->axis = is_wide(input, axis) ? axis : -1;
  strip->step = index;
  strip->value = input;
  return true;
}

/* Y_h [1, B, H] is the last step of Y [T, 1, B, H]. */
static bool through_last_state(Graph *graph, Strip *strip) {
  (void)graph;
  const Node *node = strip->value->producer;
  Value *y = node->outputs[0];
  bool lengths = node_input(node, INPUT_LENGTHS);
  if (strip->value->producer_output != 1 || !y || lengths || node_int(node, ATTR_layout) != 0) return false;
  Direction direction = node_word(node, ATTR_direction);
  if (direction == DIRECTION_bidirectional || strip->axis >= 0 || !dim_is_const(y->shape[0])) return false;
  strip->axis = is_wide(y, 0) ? 0 : -1;
  strip->step = direction == DIRECTION_forward ? dim_value(y->shape[0]) - 1 : 0;
  strip->value = y;
  return true;
}

static bool (*const through_op[N_OPS])(Graph *, Strip *) = {
    [OP_Concat] = through_concat,   [OP_GRU] = through_last_state, [OP_Gather] = through_gather,
    [OP_LSTM] = through_last_state, [OP_RNN] = through_last_state, [OP_Slice] = through_slice,
    [OP_Split] = through_split,
};

static bool through(Graph *graph, Strip *strip) {
  const Node *node = strip->value->producer;
  if (!node) return false;
  if (op_is_view(node->op)) return through_view(graph, strip);
  return through_op[node->op->kind] && through_op[node->op->kind](graph, strip);
}

Strip strip_origin(Graph *graph, Strip strip, Trail *trail) {
  enum { MAX_WAY = 32 };
  for (int i = 0; i < MAX_WAY; i++) {
    Strip before = strip;
    if (!through(graph, &strip)) return before;
    if (trail && strip.axis < 0) strip_passed(&before, trail);
  }
  return strip;
}

static bool is_concat_of_columns(const Strip *strip) {
  const Node *node = strip->value->producer;
  return is_op(node, OP_Concat) &&
         normal_axis(node_int(node, ATTR_axis), strip->value->rank) == last_axis(strip->value);
}

typedef struct Parts {
  Graph *graph;
  Trail *trail;
  int most, n;
  Strip *strips;
} Parts;

static bool add_parts(Parts *parts, Strip strip, int depth);

/* The part of the strip that each input of the Concat holds. */
static bool add_pieces(Parts *parts, const Strip *strip, int depth) {
  const Node *concat = strip->value->producer;
  int64_t begin = 0, end = strip->first + strip->count;
  if (parts->trail) strip_passed(strip, parts->trail);
  for (int i = 0; i < concat->n_inputs; i++) {
    Strip piece;
    if (!strip_whole(concat->inputs[i], &piece)) return false;
    int64_t next = begin + piece.count;
    piece.first = strip->first > begin ? strip->first - begin : 0;
    piece.count = (end < next ? end : next) - begin - piece.first;
    piece.axis = strip->axis;
    piece.step = strip->step;
    if (piece.count > 0 && !add_parts(parts, piece, depth + 1)) return false;
    begin = next;
  }
  return true;
}

static bool add_parts(Parts *parts, Strip strip, int depth) {
  enum { MAX_DEPTH = 8 };
  int mark = parts->trail ? parts->trail->n : 0;
  strip = strip_origin(parts->graph, strip, parts->trail);
  if (is_concat_of_columns(&strip) && depth < MAX_DEPTH) return add_pieces(parts, &strip, depth);
  if (parts->trail) parts->trail->n = mark;
  if (parts->n == parts->most) return false;
  parts->strips[parts->n++] = strip;
  return true;
}

int strip_parts(Graph *graph, Strip strip, Trail *trail, int most, Strip *parts) {
  Parts found = {graph, trail, most, 0, parts};
  return add_parts(&found, strip, 0) ? found.n : 0;
}

/* ---- element-wise nodes ---- */

bool strip_operand(Graph *graph, const Strip *strip, Value *operand, Strip *part) {
  if (operand->dtype != RNNCC_F32) return false;
  const Value *output = strip->value;
  bool one_column = operand->rank == 0 || dim_equals(operand->shape[last_axis(operand)], 1);
  bool all_columns =
      operand->rank > 0 && same_dim(operand->shape[last_axis(operand)], output->shape[last_axis(output)]);
  *part = (Strip){.value = operand, .first = strip->first, .count = strip->count, .axis = -1};
  if (!all_columns && one_column) part->first = 0, part->count = 1;
  if (operand->data) return all_columns || one_column;
  if (!all_columns) return false;
  int axis = strip->axis < 0 ? -1 : strip->axis - (output->rank - operand->rank);
  if (axis >= 0 && is_wide(operand, axis)) part->axis = axis, part->step = strip->step;
  const Dim *mine = strip_rows(graph, part), *wanted = strip_rows(graph, strip);
  return mine && wanted && same_dim(mine, wanted);
}
