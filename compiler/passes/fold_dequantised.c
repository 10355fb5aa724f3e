/* SPDX-License-Identifier: MIT */
/*
 * DequantizeLinear of constants, which no operator of integers has taken: weights of nodes that compute in f32. They
 * become constants of f32; where they were i8 without zero points, these say so (ir/narrow.h).
 */
#include "ir/narrow.h"
#include "ir/op.h"
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

/* Of i8 without zero points, and scales that are those of ir/narrow.h. */
static const NarrowWeights *narrow_of(Graph *graph, const Node *node, const Parameters *p) {
  bool rows = p->block && p->inner == 1 && p->block >= p->extent;
  if (node->inputs[0]->dtype != RNNCC_I8 || (p->block && !rows)) return NULL;
  for (int64_t i = 0; p->zero && i < value_count(p->zero); i++)
    if (value_element(p->zero, i) != 0) return NULL;
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  *narrow = (NarrowWeights){.dtype = RNNCC_I8, .inner = p->inner, .count = p->extent};
  if (rows) narrow->inner = p->extent, narrow->count = value_count(p->scale);
  float *scales = ARENA_ARRAY(graph->arena, float, narrow->count);
  for (int64_t i = 0; i < narrow->count; i++) scales[i] = (float)value_element(p->scale, i);
  narrow->scales = scales;
  return narrow;
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
