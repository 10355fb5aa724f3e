/* SPDX-License-Identifier: MIT */
#include "passes/explain_int8.h"

#include <math.h>
#include <stdlib.h>

#include "ir/bodies.h"
#include "ir/cell.h"
#include "ir/family.h"
#include "ir/integer_mean.h"
#include "ir/tensor.h"
#include "passes/quantised.h"
#include "shapes/quantised.h"
#include "shapes/shape.h"
#include "support/list.h"

typedef struct Row {
  const Node *node;
  const char *op;       /* decompose may change the node's */
  const char *obstacle; /* why it computes in floats; NULL: it does not */
  bool is_layer;        /* RNN, GRU, LSTM: its attribute `precision` decides, which --precision sets later */
  bool needs_kernel;    /* of integers: whether there is one is only known after decompose */
  bool in_bytes;        /* of kernels of integers */
  double products;      /* multiply-adds at the dims' optimum */
  double largest;       /* the largest sum of its integers; 0: not known */
} Row;

struct Int8Rows {
  int n, capacity;
  Row *rows;
};

/* ---- products ---- */

/* The inputs of a product: of a convolution (of channels along axis 0 of w) or of matrices. */
typedef struct ProductForm {
  bool integers, convolves;
  int w;
} ProductForm;

static const ProductForm *product_form(const Node *node) {
  static const ProductForm forms[N_OPS] = {
      [OP_Conv] = {false, true, 1},
      [OP_ConvInteger] = {true, true, 1},
      [OP_ConvTranspose] = {false, true, 1},
      [OP_Gemm] = {false, false, 1},
      [OP_MatMul] = {false, false, 1},
      [OP_MatMulInteger] = {true, false, 1},
      [OP_QGemm] = {true, false, 3},
      [OP_MatMulIntegerToFloat] = {true, false, 1},
      [OP_QLinearConv] = {true, true, 3},
      [OP_QLinearMatMul] = {true, false, 3},
      [OP_ConvIntegerToFloat] = {true, true, 1},
  };
  const ProductForm *form = &forms[node->op->kind];
  return form->w ? form : NULL;
}

static bool is_turned(const Node *node) {
  return op_has_attribute(node->op, ATTR_transB) && node_int(node, ATTR_transB) != 0;
}

/* The axis of w that is the result's channels or columns. */
static int outputs_axis(const Node *node, const ProductForm *form) {
  if (form->convolves) return 0;
  return is_turned(node) ? 0 : node->inputs[form->w]->rank - 1;
}

static double multiply_adds(const Node *node, const ProductForm *form) {
  const Value *w = node->inputs[form->w];
  int axis = outputs_axis(node, form), first = form->convolves ? 1 : w->rank > 1 ? w->rank - 2 : 0;
  double depth = 1;
  for (int k = first; k < w->rank; k++)
    if (k != axis || w->rank == 1) depth *= (double)dim_optimum(w->shape[k]);
  if (is_turned(node)) depth = (double)dim_optimum(w->shape[1]);
  return value_optimum(node->outputs[0]) * depth;
}

/* Of the gates of all steps, with the input and with the hidden state. */
static double layer_multiply_adds(const Node *node) {
  const Value *x = node->inputs[INPUT_X], *w = node->inputs[INPUT_W], *r = node->inputs[INPUT_R];
  double samples = (double)dim_optimum(x->shape[0]) * (double)dim_optimum(x->shape[1]);
  return samples * (value_optimum(w) + value_optimum(r));
}

/* 255 times the largest sum of an output's weights; 0: they are not constant. Zero points make it at most twice that.
 */
static double largest_sum(const Node *node, const ProductForm *form) {
  const Value *w = node->inputs[form->w];
  if (!w->data || w->rank < 2) return 0;
  int axis = outputs_axis(node, form);
  int64_t extent = dim_value(w->shape[axis]), inner = 1;
  double most = 0, *sums = calloc((size_t)extent, sizeof *sums);
  for (int k = axis + 1; k < w->rank; k++) inner *= dim_value(w->shape[k]);
  for (int64_t i = 0; sums && i < value_count(w); i++) sums[i / inner % extent] += fabs(value_element(w, i));
  for (int64_t i = 0; sums && i < extent; i++) most = fmax(most, 255 * sums[i]);
  free(sums);
  return most;
}

/* Why the product's operand is none of fuse_quantised; NULL: it is. */
static const char *operand_obstacle(Graph *graph, const Node *node, int input, int axis) {
  Arena *arena = graph->arena;
  Quantisation how;
  const Value *value = node->inputs[input];
  const char *name = printable(arena, value->name);
  if (!dequantised_from(value, &how)) {
    if (value->producer && is_op(value->producer, OP_DequantizeLinear))
      return arena_format(arena, "`%s` is quantised to %s, or by blocks", name,
                          dtype_name(value->producer->inputs[0]->dtype));
    return arena_format(arena, value->data ? "its constant `%s` is in floats" : "its input `%s` is in floats", name);
  }
  if (!has_8_bits(&how)) return arena_format(arena, "`%s` is quantised to %s", name, dtype_name(how.dtype));
  if (!is_whole(&how) && how.axis != axis)
    return arena_format(arena, "`%s` has scales of axis %d; a product takes %s", name, how.axis,
                        axis < 0 ? "one for the whole tensor" : "those of the results' channels");
  return NULL;
}

static const char *product_obstacle(Graph *graph, const Node *node, const ProductForm *form) {
  if (is_op(node, OP_ConvTranspose)) return "no kernel of integers for ConvTranspose";
  const char *x = operand_obstacle(graph, node, 0, WHOLE_TENSOR);
  const char *w = operand_obstacle(graph, node, form->w, outputs_axis(node, form));
  if (x || w) return x ? x : w;
  if (form->convolves && !has_few_taps(node->inputs[form->w])) return "its window has too many elements";
  return form->convolves
             ? "its result is in floats or its bias leaves i32, and no kernel of bytes runs it faster than one of "
               "floats"
             : "its attributes leave no common scale";
}

/* ---- other nodes ---- */

static bool is_float(const Value *value) { return value && dtype_is_float(value->dtype); }

static bool is_number_of_bytes(const Value *value) { return value && dtype_is_byte(value->dtype); }

/* Some input or output that is no constant. */
static bool any_value(const Node *node, bool (*is)(const Value *)) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && !node->inputs[i]->data && is(node->inputs[i])) return true;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && is(node->outputs[i])) return true;
  return false;
}

static bool any_dequantised(const Node *node) {
  Quantisation how;
  for (int i = 0; i < node->n_inputs; i++)
    if (dequantised_from(node->inputs[i], &how)) return true;
  return false;
}

/* Their formula has tensors of floats; that of other operators of integers is element by element, in registers. */
static bool has_float_formula(const Node *node) { return is_integer_mean(node) || is_op(node, OP_QLinearSoftmax); }

static const char *obstacle_of(Graph *graph, const Node *node, const ProductForm *form) {
  if (form) return form->integers ? NULL : product_obstacle(graph, node, form);
  if (!any_value(node, is_float)) return NULL;
  if (is_op(node, OP_QuantizeLinear)) return "from floats to integers";
  if (is_op(node, OP_DequantizeLinear)) return "from integers to floats";
  if (node->op->family == &family_elementwise)
    return any_dequantised(node) ? "element by element in registers, from integers" : "its inputs are in floats";
  return any_dequantised(node) ? arena_format(graph->arena, "no kernel of integers for %s", node->op->name)
                               : "its inputs are in floats";
}

/* ---- the rows ---- */

static void add_rows(Graph *graph, Int8Rows *list) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    Attribute *bodies[MAX_BODIES];
    const ProductForm *form = product_form(node);
    int n_bodies = node_bodies(node, bodies);
    for (int b = 0; b < n_bodies; b++) add_rows(bodies[b]->graph, list);
    if (n_bodies || (!any_value(node, is_float) && !any_value(node, is_number_of_bytes))) continue;
    Row row = {.node = node, .op = node->op->name, .obstacle = obstacle_of(graph, node, form)};
    row.is_layer = cell_kind(node->op->kind) != NULL;
    if (row.is_layer) row.products = layer_multiply_adds(node), row.obstacle = NULL;
    if (form) row.products = multiply_adds(node, form);
    row.needs_kernel = (form && form->integers) || has_float_formula(node);
    if (form && form->integers) row.largest = largest_sum(node, form);
    if (is_integer_mean(node)) row.largest = 255 * integer_mean_points(node);
    *LIST_ADD(graph->arena, list->rows, list->n, list->capacity) = row;
  }
}

Int8Rows *int8_rows(Graph *graph) {
  Int8Rows *list = ARENA_NEW(graph->arena, Int8Rows);
  add_rows(graph, list);
  return list;
}

/* ---- the table ---- */

/* Is the node still there? Then its kernels multiply bytes; else its formula is of floats that hold them. */
static bool stays(const Graph *graph, const Node *node) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    if (graph->nodes[n] == node) return true;
    for (int b = node_bodies(graph->nodes[n], bodies); b-- > 0;)
      if (stays(bodies[b]->graph, node)) return true;
  }
  return false;
}

static const char *sums_text(Arena *arena, const Row *row) {
  if (row->largest <= 0) return "";
  return arena_format(arena, "sums of at most %.0f, %s", row->largest,
                      row->largest < 0x1p31 ? "less than 2^31" : "in parts of less than 2^31");
}

void int8_settle(const Graph *graph, Int8Rows *list) {
  for (int i = 0; i < list->n; i++) {
    Row *row = &list->rows[i];
    row->in_bytes = !row->obstacle && (!row->needs_kernel || stays(graph, row->node));
  }
}

static const char *why_layer(const Node *node) {
  static const char *const words[] = {[PRODUCTS_f32] = "its precision is f32",
                                      [PRODUCTS_int8_dynamic] = "inputs and states by the range of each step",
                                      [PRODUCTS_int8_static] = "inputs and states by ranges that the model has"};
  return words[node_word(node, ATTR_precision)];
}

static const char *why(Graph *graph, const Row *row, bool in_bytes) {
  if (row->is_layer) return why_layer(row->node);
  if (row->obstacle) return row->obstacle;
  if (!row->needs_kernel) return "moves, compares or adds integers";
  if (in_bytes) return sums_text(graph->arena, row);
  return "integers in kernels of floats, exactly: none of 8 bits takes its weights or shapes";
}

Text int8_table(Graph *graph, const Int8Rows *list) {
  Text out = text_new(graph->arena);
  double all = 0, of_bytes = 0;
  text_add(&out, "%-24s %-26s %-5s %s\n", "node", "op", "in", "why");
  for (int i = 0; i < list->n; i++) {
    const Row *row = &list->rows[i];
    bool in_bytes = row->is_layer ? node_word(row->node, ATTR_precision) != PRODUCTS_f32 : row->in_bytes;
    all += row->products;
    if (in_bytes) of_bytes += row->products;
    text_add(&out, "%-24.24s %-26s %-5s %s\n", printable(graph->arena, row->node->name), row->op,
             in_bytes ? "int8" : "f32", why(graph, row, in_bytes));
  }
  text_add(&out, "%.1f%% of %.4g million multiply-adds are of integers of 8 bits\n", all > 0 ? 100 * of_bytes / all : 0,
           all * 1e-6);
  return out;
}
