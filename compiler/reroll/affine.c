/* SPDX-License-Identifier: MIT */
#include "reroll/affine.h"

#include <string.h>

#include "shapes/shape.h"

/* Nested deeper, a sum is none that an exporter writes; and a hostile model costs no stack. */
enum { MAX_DEPTH = 24 };

typedef struct Reader {
  Graph *graph;
  Trail *trail;
  Affine *affine;
} Reader;

static bool read(Reader *r, Strip strip, double scale, int depth);

static bool add_addend(Reader *r, const Strip *numbers, double scale) {
  Affine *affine = r->affine;
  if (affine->n_addends == MAX_ADDENDS || !strip_numbers(numbers)) return false;
  affine->addends[affine->n_addends++] = (Addend){*numbers, scale};
  return true;
}

static bool add_rest(Reader *r, const Strip *strip, double scale) {
  if (r->affine->rest.value || scale != 1) return false;
  r->affine->rest = *strip;
  return true;
}

/* [a | b] times weights is a times the first rows of the weights plus b times the others. A first step's h may be
 * zeros: then its product is none, just as if it had been folded. */
static bool add_products(Reader *r, Product product) {
  Affine *affine = r->affine;
  Strip parts[MAX_PRODUCTS];
  int n = strip_parts(r->graph, product.input, r->trail, MAX_PRODUCTS - affine->n_products, parts);
  for (int i = 0; i < n; i++) {
    product.input = parts[i];
    if (!strip_is_zero(&parts[i])) affine->products[affine->n_products++] = product;
    product.row += parts[i].count;
  }
  return n > 0;
}

/* The whole left operand of a product, of the rows that the strip of the result has. */
static bool left_operand(const Strip *result, Value *operand, Strip *left) {
  if (operand->rank != result->value->rank || !strip_whole(operand, left)) return false;
  left->axis = result->axis;
  left->step = result->step;
  return true;
}

static bool are_weights(const Value *value) { return value->data && value->rank == 2 && value->dtype == RNNCC_F32; }

static bool read_matmul(Reader *r, const Strip *strip, double scale, int depth) {
  (void)depth;
  const Node *node = strip->value->producer;
  Product product = {.weights = node->inputs[1], .column = strip->first, .scale = scale};
  return are_weights(product.weights) && left_operand(strip, node->inputs[0], &product.input) &&
         add_products(r, product);
}

static bool read_gemm(Reader *r, const Strip *strip, double scale, int depth) {
  const Node *node = strip->value->producer;
  Product product = {.weights = node->inputs[1],
                     .transposed = node_int(node, ATTR_transB),
                     .column = strip->first,
                     .scale = scale * node_float(node, ATTR_alpha)};
  if (node_int(node, ATTR_transA) || !are_weights(product.weights) ||
      !left_operand(strip, node->inputs[0], &product.input) || !add_products(r, product))
    return false;
  Strip addend;
  if (!node_input(node, 2)) return true;
  return strip_operand(r->graph, strip, node->inputs[2], &addend) &&
         read(r, addend, scale * node_float(node, ATTR_beta), depth + 1);
}

static bool read_sum(Reader *r, const Strip *strip, double scale, int depth) {
  const Node *node = strip->value->producer;
  for (int i = 0; i < node->n_inputs; i++) {
    Strip part;
    if (!strip_operand(r->graph, strip, node->inputs[i], &part) || !read(r, part, scale, depth + 1)) return false;
  }
  return true;
}

static bool read_difference(Reader *r, const Strip *strip, double scale, int depth) {
  const Node *node = strip->value->producer;
  Strip a, b;
  return strip_operand(r->graph, strip, node->inputs[0], &a) && strip_operand(r->graph, strip, node->inputs[1], &b) &&
         read(r, a, scale, depth + 1) && read(r, b, -scale, depth + 1);
}

static bool (*const read_term[N_OPS])(Reader *, const Strip *, double scale, int depth) = {
    [OP_Add] = read_sum,        [OP_Gemm] = read_gemm, [OP_MatMul] = read_matmul,
    [OP_Sub] = read_difference, [OP_Sum] = read_sum,
};

static bool read(Reader *r, Strip strip, double scale, int depth) {
  if (depth > MAX_DEPTH) return false;
  if (strip.value->data) return add_addend(r, &strip, scale);
  int mark = r->trail->n;
  Strip origin = strip_origin(r->graph, strip, r->trail);
  if (origin.value->data) return add_addend(r, &origin, scale);
  const Node *node = origin.value->producer;
  if (node && read_term[node->op->kind]) {
    strip_passed(&origin, r->trail);
    return read_term[node->op->kind](r, &origin, scale, depth);
  }
  r->trail->n = mark;
  return add_rest(r, &strip, scale);
}

bool affine_read(Graph *graph, Trail *trail, Strip strip, Affine *affine) {
  *affine = (Affine){0};
  return read(&(Reader){graph, trail, affine}, strip, 1, 0);
}

void affine_negate(Affine *affine) {
  for (int i = 0; i < affine->n_products; i++) affine->products[i].scale = -affine->products[i].scale;
  for (int i = 0; i < affine->n_addends; i++) affine->addends[i].scale = -affine->addends[i].scale;
}

void product_weights(const Product *product, int64_t units, int64_t stride, float *target) {
  const Value *weights = product->weights;
  int64_t row_length = dim_value(weights->shape[1]);
  int64_t depth_stride = product->transposed ? 1 : row_length, unit_stride = product->transposed ? row_length : 1;
  const float *first = (const float *)weights->data + product->row * depth_stride + product->column * unit_stride;
  for (int64_t unit = 0; unit < units; unit++)
    for (int64_t k = 0; k < product->input.count; k++)
      target[unit * stride + k] += (float)(product->scale * (double)first[unit * unit_stride + k * depth_stride]);
}

double affine_bias(const Affine *affine, int64_t unit) {
  double sum = 0;
  for (int i = 0; i < affine->n_addends; i++) {
    const Strip *numbers = &affine->addends[i].numbers;
    sum += affine->addends[i].scale *
           (double)((const float *)numbers->value->data)[numbers->first + (numbers->count == 1 ? 0 : unit)];
  }
  return sum;
}

bool same_constant(const Value *a, const Value *b) {
  if (a == b) return true;
  return a->dtype == b->dtype && shapes_agree(a, b) &&
         !memcmp(a->data, b->data, (size_t)value_count(a) * dtype_size(a->dtype));
}
