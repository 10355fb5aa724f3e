/* SPDX-License-Identifier: MIT */
/*
 * DequantizeLinear of constants, which no operator of integers has taken: weights of nodes that compute in f32. They
 * become constants of f32, which say so (ir/narrow.h) where each number less its zero point is one of 8 or 4 bits.
 */
#include "ir/narrow.h"
#include "ir/op.h"
#include "ir/precision.h"
#include "ir/tensor.h"
#include "passes.h"

/* Element i has the parameters i / outer_step * blocks * inner + i / inner % extent / block * inner + i % inner, where
 * the blocks of an axis have one each; of an axis, or of the whole tensor, those of its place or the one there is. */
typedef struct Parameters {
  const Value *scale, *zero; /* zero: NULL: 0 */
  int64_t extent, inner;     /* of the axis, and of an element of it */
  int64_t block;             /* elements of a block; 0: no blocks */
} Parameters;

static Parameters parameters_of(const Node *node) {
  const Value *x = node->inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  Parameters p = {.scale = node->inputs[1], .zero = node_input(node, 2), .extent = 1, .inner = value_count(x)};
  p.block = node_int(node, ATTR_block_size);
  if (value_count(p.scale) == 1 && !p.block) return p;
  p.extent = dim_value(x->shape[axis]);
  p.inner = 1;
  for (int i = axis + 1; i < x->rank; i++) p.inner *= dim_value(x->shape[i]);
  return p;
}

static int64_t place_of(const Parameters *p, int64_t i) {
  int64_t along = i / p->inner % p->extent;
  if (!p->block) return along;
  int64_t blocks = (p->extent + p->block - 1) / p->block;
  return (i / (p->inner * p->extent) * blocks + along / p->block) * p->inner + i % p->inner;
}

/* Groups of an axis whose channels are those of ir/narrow.h: the last axis in blocks, or the first one of a matrix. */
static bool take_groups(const Value *x, const Parameters *p, NarrowWeights *narrow) {
  bool rows = p->inner == 1, matrix = x->rank == 2 && p->inner > 1 && p->inner * p->extent == value_count(x);
  if (!rows && !matrix) return false;
  bool one = p->block >= p->extent;
  if (!one && !precision_group_fits(p->block)) return false;
  narrow->inner = rows ? p->extent : 1;
  narrow->count = value_count(x) / p->extent;
  narrow->group = one ? 0 : p->block;
  narrow->groups = (p->extent + p->block - 1) / p->block;
  return true;
}

/* Is each number less its zero point one of the type? */
static bool numbers_fit(const Value *x, const Parameters *p, DType dtype) {
  int64_t most = dtype == RNNCC_I4 ? 7 : 127;
  for (int64_t i = 0; i < value_count(x); i++) {
    int64_t number = value_integer(x, i) - (p->zero ? value_integer(p->zero, place_of(p, i)) : 0);
    if (number < -most - 1 || number > most) return false;
  }
  return true;
}

/* The scale of channel c and group g; those of a matrix's first axis stand in rows of groups. */
static float scale_at(const Parameters *p, const NarrowWeights *narrow, int64_t c, int64_t g) {
  bool along_rows = narrow->groups > 1 && p->inner > 1;
  int64_t at = along_rows ? g * p->inner + c : c * narrow->groups + g;
  return (float)value_element(p->scale, value_count(p->scale) == 1 ? 0 : at);
}

/* What a kernel may keep of the node's integers; NULL: only floats. */
static const NarrowWeights *narrow_of(Graph *graph, const Node *node, const Parameters *p) {
  const Value *x = node->inputs[0];
  bool small = dtype_info(x->dtype)->bits <= 4;
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  *narrow = (NarrowWeights){.inner = p->inner, .count = p->extent, .groups = 1};
  narrow->dtype = small && numbers_fit(x, p, RNNCC_I4) ? RNNCC_I4 : RNNCC_I8;
  if (p->block && !take_groups(x, p, narrow)) return NULL;
  if (narrow->dtype == RNNCC_I8 && !numbers_fit(x, p, RNNCC_I8)) return NULL;
  int64_t count = narrow->count * narrow->groups;
  float *scales = ARENA_ARRAY(graph->arena, float, count ? count : 1);
  for (int64_t i = 0; i < count; i++) scales[i] = scale_at(p, narrow, i / narrow->groups, i % narrow->groups);
  narrow->scales = scales;
  return narrow_scales_fit(scales, count) ? narrow : NULL;
}

static bool is_weight(const Node *node) {
  const Value *x = node->inputs[0], *zero = node_input(node, 2);
  return is_op(node, OP_DequantizeLinear) && x->data && node->inputs[1]->data && (!zero || zero->data) &&
         dtype_is_integer(x->dtype) && node->outputs[0]->dtype == RNNCC_F32 && node->inputs[1]->dtype == RNNCC_F32;
}

/* As the formula of DequantizeLinear has it: a difference of integers, then one multiplication in f32. */
static void fold(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  Value *y = node->outputs[0];
  Parameters p = parameters_of(node);
  float *data = ARENA_ARRAY(graph->arena, float, value_count(x));
  for (int64_t i = 0; i < value_count(x); i++) {
    int64_t at = place_of(&p, i), zero = p.zero ? value_integer(p.zero, at) : 0;
    data[i] = (float)(value_integer(x, i) - zero) * (float)value_element(p.scale, at);
  }
  y->narrow = narrow_of(graph, node, &p);
  y->data = data;
  y->producer = NULL;
}

/* needs: infer_shapes, match_quantised. keeps: types and shapes. Afterwards no DequantizeLinear to f32 has only
 * constant inputs. */
void fold_dequantised(Graph *graph) {
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    if (is_weight(graph->nodes[n]))
      fold(graph, graph->nodes[n]);
    else
      graph->nodes[kept++] = graph->nodes[n];
  }
  graph->n_nodes = kept;
  graph_renumber(graph);
}
