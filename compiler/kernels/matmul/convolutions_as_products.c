/* SPDX-License-Identifier: MIT */
/*
 * A convolution whose window is its whole input multiplies each weight once a sample, as a dense layer does: where its
 * weights are to be small (--precision), it becomes one. Such are the 1x1 convolutions behind a mean over all pixels,
 * and dense layers that a model has as convolutions of 7x7 windows.
 *
 *   Conv(x [N, C, H, W], w [K, C, H, W])   Reshape(Gemm(Reshape(x, [N, C H W]), w as [K, C H W]'), [N, K, 1, 1])
 *
 * One of 1x1 windows multiplies each weight once a pixel. Of few pixels it is held up by reading its weights; then the
 * product of small ones is faster, although pixels become rows before it and channels again behind it.
 *
 *   Conv(x [N, C, H, W], w [K, C, 1, 1])   y' of Gemm(x' as [N H W, C], w as [K, C]'), where x' has the channels last
 *
 * A transposed convolution of one pixel, as generators of pictures begin with, multiplies each weight once a sample.
 * As a product it reads them once for several samples: so it always becomes one.
 *
 *   ConvTranspose(x [N, C, 1, 1], w [C, K, R, S])   Reshape(Gemm(x as [N, C], w as [C, K R S]), [N, K, R, S])
 */
#include "kernels/matmul/convolutions_as_products.h"

#include "ir/narrow.h"
#include "ir/precision.h"
#include "kernels/conv/convolution.h"
#include "kernels/conv/cost.h"
#include "kernels/gemm/narrow_panels.h"
#include "layout/layout.h"
#include "layout/layout_costs.h"
#include "passes.h"
#include "passes/narrow_weights.h"
#include "shapes/build.h"
#include "shapes/shape.h"

static bool window_is_input(Graph *graph, const Node *node) {
  Window window;
  const Value *x = node->inputs[0];
  if (!read_window(graph, node, &window) || !is_unpadded(&window)) return false;
  for (int i = 0; i < window.n_spatial; i++)
    if (!dim_equals(x->shape[2 + i], window.kernel[i]) || !dim_equals(window.out[i], 1)) return false;
  return true;
}

/* ---- of few pixels ---- */

/* A Reshape finds one extent that only the run knows. */
static bool window_is_pixel(Graph *graph, const Node *node) {
  Window window;
  const Value *x = node->inputs[0];
  if (!read_window(graph, node, &window) || !is_pointwise(&window) || is_strided(&window)) return false;
  int of_run = !dim_is_const(x->shape[0]);
  for (int axis = 2; axis < x->rank; axis++) of_run += !dim_is_const(x->shape[axis]);
  return of_run <= 1;
}

static const Dim *rows_of(Graph *graph, const Value *x) {
  return dim_mul(graph->dims, x->shape[0], value_count_dim(graph, x, 2, x->rank));
}

/* As the other algorithms of convolutions: each weight comes from memory once a run. */
static double product_cycles(Graph *graph, const Node *node, const NarrowWeights *form) {
  const Machine *m = graph->config->machine;
  const Value *w = node->inputs[1];
  const Dim *rows = rows_of(graph, node->inputs[0]);
  int64_t n = dim_value(w->shape[0]), k = dim_value(w->shape[1]), lanes = graph->config->target->lanes;
  GemmKnobs knobs = gemm_knobs(graph, n, k, rows);
  double widening = dtype_info(form->dtype)->bits < 16 ? 2 : 1; /* instructions of a vector of weights */
  double blocks = (double)ceil_div(dim_optimum(rows), knobs.rows.most), height = (double)dim_optimum(rows) / blocks;
  TileCycles step = tile_step(m, (int)lanes, height, knobs.vectors, 1);
  double widened = knobs.vectors * widening / fma_per_cycle(m, (int)lanes);
  double panels = (double)ceil_div(n, knobs.vectors * lanes);
  double busy = max_double(step.multiply + widened, step.load) * (double)k * panels * blocks / m->cores;
  return max_double(busy, cycles_to_fetch(m, (double)(n * k) * weights_size(form), true));
}

/* With the transposition before it and the one behind it. */
static double product_seconds(Graph *graph, const Node *node, const NarrowWeights *form) {
  const Machine *m = graph->config->machine;
  double moved = 2 * (value_optimum_bytes(node->inputs[0]) + value_optimum_bytes(node->outputs[0]));
  return seconds_of_cycles(m, product_cycles(graph, node, form)) + copying_seconds(graph, moved) + 2e-9 * m->barrier_ns;
}

static double convolution_seconds(Graph *graph, const Node *node) {
  const NodeLayout row_major = {LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR}, blocked = {LAYOUT_BLOCKED, LAYOUT_BLOCKED};
  double seconds = layout_node_seconds(graph, node, row_major).estimated;
  if (!(possible_layouts(graph, node) & LAYOUT_SET_BLOCKED)) return seconds;
  return min_double(seconds, layout_node_seconds(graph, node, blocked).estimated);
}

/* A convolution that multiplies numbers of bf16 itself has nothing to gain: it needs no transpositions. */
static bool gains(Graph *graph, const Node *node, const NarrowWeights *form) {
  if (form->rounds_rows && convolution_multiplies_bf16(graph, node)) return false;
  return window_is_pixel(graph, node) && product_seconds(graph, node, form) < convolution_seconds(graph, node);
}

/* ---- which ---- */

bool convolution_can_be_product(Graph *graph, const Node *node, const NarrowWeights *form) {
  if (!is_op(node, OP_Conv) || node_int(node, ATTR_group) != 1 || !can_be_narrow(node->inputs[1])) return false;
  return window_is_input(graph, node) || gains(graph, node, form);
}

/* Is it a transposed convolution of one pixel, whose output is its window? The bias of each channel becomes one of each
 * element: one that can change is left as it is. */
static bool spreads_pixel(Graph *graph, const Node *node) {
  Window window;
  if (!is_op(node, OP_ConvTranspose) || node_int(node, ATTR_group) != 1 || !can_be_narrow(node->inputs[1]))
    return false;
  const Value *x = node->inputs[0], *bias = node_input(node, 2);
  if (bias && (!bias->data || bias->block)) return false;
  if (!read_window(graph, node, &window) || !is_unpadded(&window)) return false;
  for (int i = 0; i < window.n_spatial; i++)
    if (!dim_equals(x->shape[2 + i], 1) || !dim_equals(window.out[i], window.kernel[i])) return false;
  return true;
}

/* Is it to have weights of fewer bits? */
static bool is_to_be_small(Graph *graph, const Node *node) {
  const PrecisionRule *rule = precision_rule_of(graph->arena, &graph->config->precision, node->name, NULL);
  const NarrowWeights form = rule ? weights_form(rule, graph->config->target) : (NarrowWeights){.dtype = RNNCC_NONE};
  return form.dtype && convolution_can_be_product(graph, node, &form);
}

/* The same numbers: what is known of them stays true, as a row has those of an output channel. */
static Value *as_matrix(Graph *graph, const Value *weights) {
  int64_t rows = dim_value(weights->shape[0]), shape[] = {rows, value_count(weights) / rows};
  Value *matrix = graph_constant(graph, weights->name, weights->dtype, 2, shape, weights->data);
  matrix->where = weights->where;
  matrix->narrow = weights->narrow;
  matrix->block = weights->block;
  return matrix;
}

/* Pixels after each other, of an image after each other. */
static Value *pixels_as_rows(const Builder *builder, Value *x) {
  Graph *graph = builder->graph;
  static const int64_t channels_last[] = {0, 2, 1};
  const Dim *planes[] = {x->shape[0], x->shape[1], value_count_dim(graph, x, 2, x->rank)};
  Value *turned = build_transpose(builder, build_reshape(builder, x, 3, planes), channels_last);
  return build_reshape(builder, turned, 2, (const Dim *const[]){rows_of(graph, x), x->shape[1]});
}

static Value *rows_as_pixels(const Builder *builder, Value *rows, const Value *y) {
  static const int64_t channels_first[] = {0, 2, 1};
  const Dim *images[] = {y->shape[0], value_count_dim(builder->graph, y, 2, y->rank), y->shape[1]};
  Value *turned = build_transpose(builder, build_reshape(builder, rows, 3, images), channels_first);
  return build_reshape(builder, turned, y->rank, y->shape);
}

/* The product of these inputs, and the activations behind the node, whose last result becomes `*y`. */
static Value *product_of(const Builder *builder, const UseList *uses, Value *const *inputs, bool turned, Value **y) {
  const Attribute turns = attribute_int(ATTR_transB, turned);
  Node *product = build_op(builder, OP_Gemm, inputs[2] ? 3 : 2, inputs, 1, 1, &turns);
  return build_activated(builder, uses, product->outputs[0], y);
}

static void multiply(const Builder *builder, const UseList *uses, const Node *node) {
  bool whole = window_is_input(builder->graph, node);
  Value *w = as_matrix(builder->graph, node->inputs[1]), *x = node->inputs[0], *y = node->outputs[0];
  Value *rows =
      whole ? build_reshape(builder, x, 2, (const Dim *const[]){x->shape[0], w->shape[1]}) : pixels_as_rows(builder, x);
  Value *made = product_of(builder, uses, (Value *[]){rows, w, node_input(node, 2)}, true, &y);
  Value *result = whole ? build_reshape(builder, made, y->rank, y->shape) : rows_as_pixels(builder, made, y);
  graph_set_output(result->producer, 0, y);
}

static void spread(const Builder *builder, const UseList *uses, const Node *node) {
  Value *w = as_matrix(builder->graph, node->inputs[1]), *x = node->inputs[0], *y = node->outputs[0];
  Value *rows = build_reshape(builder, x, 2, x->shape), *bias = node_input(node, 2);
  if (bias) bias = build_repeated(builder, bias, dim_value(w->shape[1]) / value_count(bias));
  Value *made = product_of(builder, uses, (Value *[]){rows, w, bias}, false, &y);
  graph_set_output(build_reshape(builder, made, y->rank, y->shape)->producer, 0, y);
}

/* needs: infer_shapes, simplify (constant weights); before choose_precision. keeps: types and shapes of what remains;
 * results but for the order of sums. */
void convolutions_as_products(Graph *graph) {
  UseList uses = graph_uses(graph);
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    bool spreads = spreads_pixel(graph, node);
    if (!spreads && !is_to_be_small(graph, node)) continue;
    (spreads ? spread : multiply)(&(Builder){graph, node->name, node->where}, &uses, node);
    graph->nodes[n] = NULL;
    any = true;
  }
  if (any) graph_tidy(graph);
}
