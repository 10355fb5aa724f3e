/* SPDX-License-Identifier: MIT */
/*
 * Interval arithmetic over integers, a rule for each op. An operation that may leave its type wraps around, so its
 * result may be any number of the type. Ends saturate: INT64_MIN and INT64_MAX may also stand for what is beyond.
 */
#include "shapes/intervals.h"

#include "ir/op.h"
#include "shapes/shape.h"
#include "support/numbers.h"

const char interval_hint[] = "Min or Clip with a constant shows one, or --bound NAME=MIN..MAX says it";

static const IntRange all = {INT64_MIN, INT64_MAX};

static IntRange of_type(DType dtype) {
  if (dtype == RNNCC_BOOL) return (IntRange){0, 1};
  return dtype_is_integer(dtype) ? (IntRange){dtype_min(dtype), dtype_max(dtype)} : all;
}

static bool is_within(IntRange a, IntRange b) { return a.least >= b.least && a.most <= b.most; }

static IntRange hull(IntRange a, IntRange b) { return (IntRange){min_int(a.least, b.least), max_int(a.most, b.most)}; }

static bool is_open(IntRange a) { return a.least == INT64_MIN || a.most == INT64_MAX; }

/* ---- rules: the interval of output 0 from those of the inputs ---- */

typedef struct Operands {
  const Node *node;
  int n;
  const IntRange *of; /* n; everything of an absent input, and of floats: what a NaN is cast to may be anything */
} Operands;

typedef IntRange Rule(const Operands *in);

static IntRange first(const Operands *in) { return in->of[0]; }

static IntRange any_of(const Operands *in) {
  IntRange both = in->of[0];
  for (int i = 1; i < in->n; i++) both = hull(both, in->of[i]);
  return both;
}

static IntRange either_branch(const Operands *in) { return hull(in->of[1], in->of[2]); }

static IntRange least_of(const Operands *in) {
  IntRange result = in->of[0];
  for (int i = 1; i < in->n; i++)
    result = (IntRange){min_int(result.least, in->of[i].least), min_int(result.most, in->of[i].most)};
  return result;
}

static IntRange greatest_of(const Operands *in) {
  IntRange result = in->of[0];
  for (int i = 1; i < in->n; i++)
    result = (IntRange){max_int(result.least, in->of[i].least), max_int(result.most, in->of[i].most)};
  return result;
}

/* min(max(x, low), high) */
static IntRange clip(const Operands *in) {
  IntRange result = in->of[0];
  bool low = node_input(in->node, 1) != NULL, high = node_input(in->node, 2) != NULL;
  if (low) result = (IntRange){max_int(result.least, in->of[1].least), max_int(result.most, in->of[1].most)};
  if (high) result = (IntRange){min_int(result.least, in->of[2].least), min_int(result.most, in->of[2].most)};
  return result;
}

/* A run with another number fails. */
static IntRange expected(const Operands *in) {
  return (IntRange){node_int(in->node, ATTR_least), node_int(in->node, ATTR_most)};
}

/* [low, high], or everything after an overflow. */
static IntRange within(bool overflow, int64_t low, int64_t high) { return overflow ? all : (IntRange){low, high}; }

static IntRange add(const Operands *in) {
  IntRange sum = in->of[0];
  for (int i = 1; i < in->n; i++) {
    int64_t low, high;
    bool over = is_open(sum) || is_open(in->of[i]) || __builtin_add_overflow(sum.least, in->of[i].least, &low);
    if (over || __builtin_add_overflow(sum.most, in->of[i].most, &high)) return all;
    sum = (IntRange){low, high};
  }
  return sum;
}

static IntRange subtract(const Operands *in) {
  int64_t low, high;
  if (is_open(in->of[0]) || is_open(in->of[1])) return all;
  bool over = __builtin_sub_overflow(in->of[0].least, in->of[1].most, &low);
  over |= __builtin_sub_overflow(in->of[0].most, in->of[1].least, &high);
  return within(over, low, high);
}

static IntRange corners(const int64_t corner[4]) {
  IntRange result = {corner[0], corner[0]};
  for (int i = 1; i < 4; i++) result = hull(result, (IntRange){corner[i], corner[i]});
  return result;
}

static IntRange product(IntRange a, IntRange b) {
  int64_t corner[4];
  if (is_open(a) || is_open(b)) return all;
  bool over = __builtin_mul_overflow(a.least, b.least, &corner[0]);
  over |= __builtin_mul_overflow(a.least, b.most, &corner[1]);
  over |= __builtin_mul_overflow(a.most, b.least, &corner[2]);
  over |= __builtin_mul_overflow(a.most, b.most, &corner[3]);
  return over ? all : corners(corner);
}

static IntRange multiply(const Operands *in) { return product(in->of[0], in->of[1]); }

/* Rounded towards zero, by a positive number: that of a bound is a bound. */
static IntRange divide(const Operands *in) {
  IntRange a = in->of[0], b = in->of[1];
  if (b.least < 1) return all;
  return corners((int64_t[]){a.least / b.least, a.least / b.most, a.most / b.least, a.most / b.most});
}

/* Of the divisor's sign, which is positive, or with `fmod` of the dividend's. */
static IntRange modulo(const Operands *in) {
  IntRange a = in->of[0], b = in->of[1];
  if (b.least < 1) return all;
  int64_t most = b.most - 1;
  bool below = node_int(in->node, ATTR_fmod) && a.least < 0;
  return (IntRange){below ? -most : 0, a.least >= 0 ? min_int(a.most, most) : most};
}

static IntRange negate(const Operands *in) {
  return is_open(in->of[0]) ? all : (IntRange){-in->of[0].most, -in->of[0].least};
}

static IntRange absolute(const Operands *in) {
  IntRange a = in->of[0];
  if (a.least >= 0) return a;
  if (a.least == INT64_MIN) return all;
  return (IntRange){a.most < 0 ? -a.most : 0, max_int(-a.least, a.most)};
}

static IntRange relu(const Operands *in) { return (IntRange){max_int(0, in->of[0].least), max_int(0, in->of[0].most)}; }

static IntRange sign(const Operands *in) { return (IntRange){in->of[0].least < 0 ? -1 : 0, in->of[0].most > 0}; }

/* Of no elements they are the type's ends. */
static IntRange extreme(const Operands *in) {
  const Value *x = in->node->inputs[0];
  for (int axis = 0; axis < x->rank; axis++)
    if (dim_lower(x->shape[axis]) < 1) return all;
  return in->of[0];
}

/* Of up to as many elements as there are: of none it is 0. */
static IntRange sum(const Operands *in) {
  int64_t most = value_max_count(in->node->inputs[0]);
  return hull((IntRange){0, 0}, product(in->of[0], (IntRange){0, most}));
}

/* A place along an axis, or of NonZero along any. */
static IntRange place(const Operands *in) {
  const Value *x = in->node->inputs[0];
  int64_t most = 1;
  for (int axis = 0; axis < x->rank; axis++) most = max_int(most, dim_upper(x->shape[axis]));
  return (IntRange){0, most - 1};
}

static Rule *const rules[N_OPS] = {[OP_Abs] = absolute,
                                   [OP_Add] = add,
                                   [OP_ArgMax] = place,
                                   [OP_ArgMin] = place,
                                   [OP_Cast] = first,
                                   [OP_Clip] = clip,
                                   [OP_Compress] = first,
                                   [OP_Concat] = any_of,
                                   [OP_CumSum] = sum,
                                   [OP_Div] = divide,
                                   [OP_Expand] = first,
                                   [OP_ExpectBetween] = expected,
                                   [OP_Flatten] = first,
                                   [OP_Identity] = first,
                                   [OP_Max] = greatest_of,
                                   [OP_Min] = least_of,
                                   [OP_Mod] = modulo,
                                   [OP_Mul] = multiply,
                                   [OP_Neg] = negate,
                                   [OP_NonZero] = place,
                                   [OP_ReduceMax] = extreme,
                                   [OP_Relu] = relu,
                                   [OP_ReduceMin] = extreme,
                                   [OP_ReduceSum] = sum,
                                   [OP_Reshape] = first,
                                   [OP_Sign] = sign,
                                   [OP_Slice] = first,
                                   [OP_Split] = first,
                                   [OP_Squeeze] = first,
                                   [OP_Sub] = subtract,
                                   [OP_Sum] = add,
                                   [OP_Tile] = first,
                                   [OP_Transpose] = first,
                                   [OP_Gather] = first,
                                   [OP_GatherElements] = first,
                                   [OP_GatherND] = first,
                                   [OP_Unique] = first,
                                   [OP_Unsqueeze] = first,
                                   [OP_Where] = either_branch};

/* ---- values ---- */

/* The greatest u64 are no int64_t. */
static bool is_counted(DType dtype) { return dtype == RNNCC_BOOL || (dtype_is_integer(dtype) && dtype != RNNCC_U64); }

static IntRange of_constant(const Value *value) {
  IntRange range;
  return constant_range(value, 0, 1, &range) ? range : of_type(value->dtype);
}

static IntRange of_elements(Graph *graph, const Value *value) {
  const Dim **elements = known_elements(graph, value);
  int64_t n = value_count(value);
  if (!elements || n < 1) return of_type(value->dtype);
  IntRange both = {dim_lower(elements[0]), dim_upper(elements[0])};
  for (int64_t i = 1; i < n; i++) both = hull(both, (IntRange){dim_lower(elements[i]), dim_upper(elements[i])});
  return both;
}

IntRange value_interval(Graph *graph, const Value *value) {
  if (!is_counted(value->dtype)) return all;
  if (value->data) return of_constant(value);
  if (value->elements) return of_elements(graph, value);
  return value->interval ? *value->interval : of_type(value->dtype);
}

void infer_intervals(Graph *graph, Node *node) {
  Rule *rule = rules[node->op->kind];
  Value *y = node_output(node, 0);
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) node->outputs[i]->interval = NULL;
  if (!rule || !y || !is_counted(y->dtype)) return;
  IntRange *of = ARENA_ARRAY(graph->arena, IntRange, node->n_inputs);
  for (int i = 0; i < node->n_inputs; i++) of[i] = node->inputs[i] ? value_interval(graph, node->inputs[i]) : all;
  IntRange found = rule(&(Operands){node, node->n_inputs, of});
  if (!is_within(found, of_type(y->dtype))) return;
  const IntRange *kept = arena_copy(graph->arena, &found, sizeof found);
  for (int i = 0; i < (is_op(node, OP_Split) ? node->n_outputs : 1); i++)
    if (node->outputs[i]) node->outputs[i]->interval = kept;
}
