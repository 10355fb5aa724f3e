/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/int8.h"

#include <math.h>

#include "kernels/recurrent/kernels.h"
#include "kernels/recurrent/lowering.h"
#include "program/build.h"
#include "support/numbers.h"

/* As templates/panel_int8.h has them: elements that a step multiplies, bytes from one row to the next, of a RowScale.
 */
enum { DEPTH_STEP = 4, TILE_DEPTH = 8, ROW_UNIT = 64, SCALE_BYTES = 8 };

/* The fewest units whose steps' products gain by matrices in registers, whose sums go through memory, beside VNNI. */
enum { LEAST_MATRIX_UNITS = 128 };

/* 255 * 128 * this is less than 2^31: no sum leaves i32. */
enum { MOST_DEPTH = 65793 };

static int64_t row_bytes(int64_t n) { return round_up(n, ROW_UNIT); }

bool int8_asked(const Node *node) { return node_word(node, ATTR_precision) != PRODUCTS_f32; }

bool int8_is_static(const Node *node) { return node_word(node, ATTR_precision) == PRODUCTS_int8_static; }

void int8_read_ranges(const Node *node, Layer *l) {
  l->fixed_ranges = int8_is_static(node);
  for (int end = 0; l->fixed_ranges && end < 2; end++) {
    l->input_range[end] = node_attribute(node, ATTR_input_range)->floats[end];
    l->hidden_range[end] = node_attribute(node, ATTR_hidden_range)->floats[end];
  }
}

const char *int8_obstacle(const Node *node) {
  for (int i = INPUT_W; i <= INPUT_R; i++) {
    const Value *weights = node->inputs[i];
    if (!value_is_constant(weights)) return i == INPUT_W ? "needs a constant W" : "needs a constant R";
    if (dim_is_const(weights->shape[2]) && dim_value(weights->shape[2]) > MOST_DEPTH)
      return "takes at most 65793 inputs and units: sums of more could leave 32 bits";
  }
  return NULL;
}

/* ---- scratch memory ---- */

/* The most workers that share a sample, each with a copy of its state in bytes. */
static int64_t most_slots(const Layer *l) {
  int64_t ways = l->variant.workers / l->variant.batch_parts;
  return ways < 1 ? 1 : ways < l->panels ? ways : l->panels;
}

/* Tiles need rows in pairs; the product with W in matrices, in whole ones. */
static int64_t whole_rows(int64_t rows, int unit) { return rows < INT64_MAX - unit ? round_up(rows, unit) : rows; }
static int64_t state_rows(const Layer *l, int64_t batch) {
  return whole_rows(batch, l->hidden_form == IN_TILES ? 2 : 1);
}
static int64_t input_rows(const Layer *l, int64_t samples) {
  return whole_rows(samples, l->input_form == IN_TILES ? 2 : l->input_form == IN_MATRICES ? MATRIX_ROWS : 1);
}

static int64_t take(int64_t *end, int64_t rows, int64_t bytes) {
  int64_t at = *end;
  *end = saturating_add(at, saturating_mul(rows, bytes));
  *end = *end > INT64_MAX - 63 ? INT64_MAX : (*end + 63) & ~INT64_C(63);
  return at;
}

void int8_plan_scratch(Layer *l) {
  int64_t batch = dim_upper(l->batch), samples = saturating_mul(dim_upper(l->steps), batch);
  l->slots = most_slots(l);
  int64_t states = saturating_mul(l->directions * l->slots, state_rows(l, batch));
  l->x_bytes = take(&l->scratch_bytes, input_rows(l, samples), row_bytes(l->inputs));
  l->x_scales = take(&l->scratch_bytes, samples, SCALE_BYTES);
  l->state_bytes = take(&l->scratch_bytes, states, row_bytes(l->hidden));
  l->state_scales = take(&l->scratch_bytes, states, SCALE_BYTES);
}

/* ---- weights in integers ---- */

typedef struct Column {
  float scale;
  int32_t total;
} Column;

enum { LARGEST = 127 };

/* The largest magnitude; infinite if an element is infinite or not a number. */
static double largest_of(const float *from, int64_t depth, bool *negative) {
  double largest = 0;
  for (int64_t k = 0; k < depth; k++) {
    double magnitude = fabs((double)from[k]);
    if (!isfinite(magnitude)) return INFINITY;
    if (magnitude > largest || (magnitude == largest && from[k] > 0)) *negative = from[k] < 0;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

/* Are all elements multiples of `step`, but for the rounding of a product to f32? */
static bool are_multiples(const float *from, int64_t depth, double step) {
  const double rounding = 1e-4;
  for (int64_t k = 0; k < depth; k++) {
    double element = from[k] / step;
    if (fabs(element - rint(element)) > rounding) return false;
  }
  return true;
}

/* What one is in integers. Elements that were integers before, of any quantiser, are these again, or with
 * smallest_numbers these without a common divisor: the largest is then fewer than 127 steps, or -128. */
static double step_of(const float *from, int64_t depth, bool smallest_numbers) {
  bool negative = false;
  double largest = largest_of(from, depth, &negative);
  if (largest == 0 || isinf(largest)) return largest;
  const int most = LARGEST + negative;
  for (int i = 0; i < most; i++) {
    int steps = smallest_numbers ? 1 + i : most - i;
    if (are_multiples(from, depth, largest / steps)) return largest / steps;
  }
  return largest / LARGEST;
}

/* Is the largest element of a row -128? */
static bool has_least(const float *from, int64_t depth) {
  bool negative = false;
  double largest = largest_of(from, depth, &negative);
  return negative && largest > 0 && !isinf(largest) && are_multiples(from, depth, largest / (LARGEST + 1));
}

/* Do products of two neighbours with bytes fit 16 bits? Of DOT_PAIRS. */
static bool has_small_pairs(const float *from, int64_t depth) {
  enum { MOST = 128 };
  double step = step_of(from, depth, true);
  for (int64_t k = 0; step > 0 && !isinf(step) && k < depth; k += 2) {
    int a = (int)rint(from[k] / step), b = k + 1 < depth ? (int)rint(from[k + 1] / step) : 0;
    int above = (a > 0 ? a : 0) + (b > 0 ? b : 0), below = (a < 0 ? a : 0) + (b < 0 ? b : 0);
    if (above > MOST || below < -MOST) return false;
  }
  return true;
}

static bool has_no_least(const float *from, int64_t depth) { return !has_least(from, depth); }

static bool all_rows(const Node *node, bool (*is_so)(const float *from, int64_t depth)) {
  for (int i = INPUT_W; i <= INPUT_R; i++) {
    const Value *weights = node->inputs[i];
    int64_t depth = dim_value(weights->shape[2]), rows = depth ? value_count(weights) / depth : 0;
    for (int64_t row = 0; row < rows; row++)
      if (!is_so((const float *)weights->data + row * depth, depth)) return false;
  }
  return true;
}

/* ---- forms of products ---- */

/* DOT_ANY; or, if the form counts on the target and the weights are known, DOT_PAIRS, if they are so small, or
 * DOT_SIGNS, if none is -128. */
static Int8Form form_of_weights(const Target *target, const Node *node) {
  if (target->has_dot || !target->byte_pairs || int8_obstacle(node)) return DOT_ANY;
  if (all_rows(node, has_small_pairs)) return DOT_PAIRS;
  return all_rows(node, has_no_least) ? DOT_SIGNS : DOT_ANY;
}

/* Where the CPU has no product of four bytes: two of widened pairs, and what widens and adds up. */
int int8_dot(const Target *target, const Node *node) {
  static const int instructions[] = {[DOT_ANY] = 6, [DOT_PAIRS] = 3, [DOT_SIGNS] = 4};
  return target->has_dot ? 1 : instructions[form_of_weights(target, node)];
}

bool int8_in_tiles(const Target *target, int64_t rows) { return target->has_tiles && rows > 1; }

bool int8_in_matrices(const Target *target, int64_t samples, int64_t hidden) {
  return target->has_matrices && samples >= LEAST_MATRIX_ROWS && hidden >= LEAST_MATRIX_UNITS;
}

static BlockRows rows_in_tiles(Graph *graph, int vectors, const Dim *m, int ways) {
  return block_rows_in_tiles(graph, register_rows_in_tiles(graph->config->target, vectors), m, ways);
}

/* Of matrices two tiles of rows by two vectors: what is loaded is multiplied twice. */
static void plan_input_product(Graph *graph, Layer *l) {
  const Target *target = graph->config->target;
  const Dim *samples = dim_mul(graph->dims, l->steps, l->batch);
  if (product_in_matrices(target, dim_optimum(samples), l->gates_row, l->inputs)) {
    l->input_form = IN_MATRICES;
    l->gemm.vectors = (int)min_int(l->gemm.vectors, MATRIX_SUMS / 2);
    l->gemm.rows = block_rows(2 * MATRIX_ROWS, samples, 1);
  } else if (int8_in_tiles(target, dim_optimum(samples))) {
    l->input_form = IN_TILES;
    l->gemm.rows = rows_in_tiles(graph, l->gemm.vectors, samples, 1);
  }
}

static void plan_hidden_product(Graph *graph, Layer *l) {
  const Target *target = graph->config->target;
  int ways = l->variant.batch_parts, vectors = cell_info(l->cell)->product_gates * l->unit_vectors;
  int64_t samples = ceil_div(dim_optimum(l->batch), ways);
  if (int8_in_matrices(target, samples, l->hidden)) {
    l->hidden_form = IN_MATRICES;
    l->rows = block_rows(MATRIX_ROWS, l->batch, ways);
  } else if (int8_in_tiles(target, samples)) {
    l->hidden_form = IN_TILES;
    l->rows = rows_in_tiles(graph, vectors, l->batch, ways);
  }
}

void int8_plan_products(Graph *graph, const Node *node, Layer *l) {
  l->input_form = l->hidden_form = form_of_weights(graph->config->target, node);
  plan_input_product(graph, l);
  plan_hidden_product(graph, l);
}

/* ---- packed columns ---- */

/* Bytes of a column that stand side by side, and what its depth is a multiple of. */
static int64_t depth_step(Int8Form form) { return form == IN_TILES ? TILE_DEPTH : DEPTH_STEP; }
static int64_t depth_unit(Int8Form form) { return form == IN_MATRICES ? MATRIX_BYTES : depth_step(form); }

/* Where element k of a column of a panel of `width` stands. In matrices the 64 bytes of 16 columns are side by side. */
static int64_t place_of(Int8Form form, int64_t width, int64_t column, int64_t k) {
  const int64_t beside = depth_step(form);
  if (form != IN_MATRICES) return (k / beside * width + column) * beside + k % beside;
  int64_t matrix = k / MATRIX_BYTES * (width / MATRIX_ROWS) + column / MATRIX_ROWS;
  int64_t row = matrix * MATRIX_ROWS + k % MATRIX_BYTES / beside;
  return row * MATRIX_BYTES + column % MATRIX_ROWS * beside + k % beside;
}

/* One row of W or R becomes a column of a panel. */
static Column pack_column(const float *from, int64_t depth, Int8Form form, int8_t *panel, int64_t width,
                          int64_t index) {
  double step = step_of(from, depth, form == DOT_PAIRS);
  if (isinf(step)) return (Column){.scale = NAN};
  Column column = {.scale = (float)step};
  for (int64_t k = 0; k < depth && column.scale > 0; k++) {
    int element = (int)rint(from[k] / step);
    panel[place_of(form, width, index, k)] = (int8_t)element;
    column.total += element;
  }
  return column;
}

void int8_pack(Graph *graph, Node *node, MatrixPlan *matrix, Int8Form form, const char *name) {
  const Panels *p = &matrix->panels;
  int64_t columns = panels_columns(p), depth = round_up(p->depth, depth_unit(form));
  int64_t bytes = columns * depth;
  int64_t width = (int64_t)p->vectors * p->lanes;
  int8_t *elements = ARENA_ARRAY(graph->arena, int8_t, bytes);
  float *scales = ARENA_ARRAY(graph->arena, float, columns);
  int32_t *totals = ARENA_ARRAY(graph->arena, int32_t, columns);
  const float *source = (const float *)matrix->source->data + matrix->first;
  for (int64_t i = 0; i < columns; i++) {
    int64_t from = panels_source(p, i);
    if (from < 0) continue;
    Column column = pack_column(source + from, p->depth, form, elements + i / width * width * depth, width, i % width);
    scales[i] = column.scale;
    totals[i] = column.total;
  }
  matrix->packed = graph_constant(graph, name, RNNCC_I8, 1, &bytes, elements);
  matrix->scales =
      graph_constant(graph, arena_format(graph->arena, "scales of %s", name), RNNCC_F32, 1, &columns, scales);
  matrix->totals =
      graph_constant(graph, arena_format(graph->arena, "totals of %s", name), RNNCC_I32, 1, &columns, totals);
  graph_pack(graph, node, matrix->packed);
  graph_pack(graph, node, matrix->scales);
  graph_pack(graph, node, matrix->totals);
}

/* ---- lowering ---- */

static void give_rows(Call *call, const Node *node, int64_t bytes, int64_t scales, int64_t end, const double range[2]) {
  operand_bytes(call, "quantised", node->scratch, bytes, scales - bytes, READ_WRITE);
  operand_bytes(call, "row_scales", node->scratch, scales, end - scales, READ_WRITE);
  operand_float(call, "least", range[0]);
  operand_float(call, "most", range[1]);
}

static void give_weights(Call *call, const char *const parameters[3], const MatrixPlan *matrix) {
  operand_value(call, parameters[0], matrix->packed, READ);
  operand_value(call, parameters[1], matrix->scales, READ);
  operand_value(call, parameters[2], matrix->totals, READ);
}

static const char *const weights_parameters[] = {"weights", "scales", "totals"};
static const char *const candidate_parameters[] = {"candidate", "candidate_scales", "candidate_totals"};

static void lower_input(Program *program, const Node *node, const Layer *l) {
  Call *call = kernel_call(program, node, int8_input_spec(program->arena, l));
  operand_value(call, "x", node->inputs[INPUT_X], READ);
  give_weights(call, weights_parameters, &l->matrices[MATRIX_INPUT]);
  give_matrix(program, call, "bias", &l->matrices[MATRIX_BIAS]);
  operand_bytes(call, "gates", node->scratch, 0, l->memory, WRITE);
  give_rows(call, node, l->x_bytes, l->x_scales, l->state_bytes, l->input_range);
  operand_dim(call, "rows", dim_mul(program->graph->dims, l->steps, l->batch));
  operand_integer(call, "inputs", l->inputs);
  operand_integer(call, "gates_row", l->gates_row);
  double n = (double)l->gates_row, k = (double)l->inputs, results = (double)(l->directions * l->gates * l->hidden);
  call_flops(call, 2 * results * k, EXTENTS(l->steps, l->batch));
  call_bytes(call, 4 * (k + n), EXTENTS(l->steps, l->batch));
  call_bytes(call, n * k, EXTENTS(NULL));
  call_products(call, RNNCC_I8);
}

static void lower_direction(Program *program, const Node *node, const Layer *l, int direction) {
  Call *call = kernel_call(program, node, steps_spec(program->arena, l, direction));
  give_weights(call, weights_parameters, &l->matrices[MATRIX_HIDDEN]);
  give_weights(call, candidate_parameters, &l->matrices[MATRIX_CANDIDATE]);
  give_rows(call, node, l->state_bytes, l->state_scales, l->scratch_bytes, l->hidden_range);
  operand_integer(call, "slots", l->slots);
  give_direction(program, call, node, l, direction);
  double h = (double)l->hidden;
  call_flops(call, 2 * l->gates * h * h, EXTENTS(l->steps, l->batch));
  call_bytes(call, l->gates * h * h, EXTENTS(l->steps));
  call_bytes(call, 12 * h, EXTENTS(l->steps, l->batch));
  call_products(call, RNNCC_I8);
  static const char *const apart[] = {"weights",          "scales",           "totals",    "candidate",
                                      "candidate_scales", "candidate_totals", "quantised", "row_scales"};
  for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) operand_sharing(call, apart[i], SHARED_APART);
}

void int8_lower(Program *program, const Node *node, const Layer *l) {
  lower_input(program, node, l);
  for (int direction = 0; direction < l->directions; direction++) lower_direction(program, node, l, direction);
}
