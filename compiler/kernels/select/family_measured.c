/* SPDX-License-Identifier: MIT */
/*
 * NonZero: all workers count, then all write. Compress: NonZero of the condition, and what stands there is gathered.
 */
#include "ir/family.h"
#include "program/emitter.h"

enum { CHUNKS = 64, APART = 8 }; /* of templates/nonzero_count.c */
enum { COUNT_BYTES = CHUNKS * APART * (int)sizeof(int64_t) };

static bool is_compress(const Node *node) { return is_op(node, OP_Compress); }

/* Conditions that are looked at, and the extent that they choose from. */
static const Dim *condition_count(Graph *graph, const Node *node, const Dim *extent) {
  return dim_min(graph->dims, extent, node->inputs[1]->shape[0]);
}

static int compressed_axis(const Node *node) {
  return node_has(node, "axis") ? normal_axis(node_int(node, "axis"), node->inputs[0]->rank) : -1;
}

static const Dim *compressed_extent(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  int axis = compressed_axis(node);
  return axis < 0 ? value_count_dim(graph, x, 0, x->rank) : x->shape[axis];
}

/* The counts; for Compress, then the places of what is kept. */
static void measured_scratch(Graph *graph, Node *node) {
  DimTable *dims = graph->dims;
  const Dim *bytes = dim_const(dims, COUNT_BYTES);
  if (is_compress(node)) {
    const Dim *places = condition_count(graph, node, compressed_extent(graph, node));
    bytes = dim_add(dims, bytes, dim_mul(dims, places, dim_const(dims, (int)sizeof(int64_t))));
  }
  graph_scratch(graph, node, "counts", bytes);
}

/* `y` is a C expression: where the places go. */
static void emit_nonzero(Emitter *emitter, const Node *node, const Value *x, int rank, const Dim *const *shape,
                         const Dim *n, const Dim *found, const char *y) {
  int counts = node->scratch->id;
  const Dim *zero = dim_const(emitter_graph(emitter)->dims, 0);
  double elements = (double)dim_optimum(n);
  KernelSpec *count = kernel_spec(emitter, "nonzero_count"), *place = kernel_spec(emitter, "nonzero");
  kernel_bits(count, "T", x->dtype);
  kernel_bits(place, "T", x->dtype);
  kernel_knob(count, "FLOATS", dtype_is_float(x->dtype));
  kernel_knob(place, "FLOATS", dtype_is_float(x->dtype));
  kernel_knob(place, "RANK", rank);
  KernelCall *first = kernel_call(emitter, node, count);
  call_bits(first, "x", x, zero);
  call_argument(first, "counts", "(int64_t *)(void *)t%d", counts);
  call_dim(first, "n", n);
  call_cost(first, elements, elements * (double)dtype_size(x->dtype));
  KernelCall *second = kernel_call(emitter, node, place);
  call_bits(second, "x", x, zero);
  call_argument(second, "counts", "(const int64_t *)(const void *)t%d", counts);
  call_argument(second, "y", "%s", y);
  call_measured(second, "measured", found);
  call_dims(second, "shape", rank, shape);
  call_dim(second, "n", n);
  call_cost(second, elements, elements * (double)dtype_size(x->dtype));
}

static void emit_compress(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *y = node->outputs[0];
  int axis = compressed_axis(node);
  const Dim *extent = compressed_extent(graph, node), *one = dim_const(graph->dims, 1);
  const Dim *n = condition_count(graph, node, extent), *found = y->shape[axis < 0 ? 0 : axis];
  const char *places =
      arena_format(emitter_arena(emitter), "(int64_t *)(void *)(t%d + %d)", node->scratch->id, COUNT_BYTES);
  emit_nonzero(emitter, node, node->inputs[1], 1, &n, n, found, places);
  KernelSpec *spec = kernel_spec(emitter, "gather");
  kernel_bits(spec, "T", x->dtype);
  kernel_type(spec, "Index", RNNCC_I64);
  kernel_knob(spec, "CHECKED", 0);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_bits(call, "in", x, dim_const(graph->dims, 0));
  call_argument(call, "indices", "%s", places);
  call_bits(call, "out", y, dim_const(graph->dims, 0));
  call_dim(call, "outer", axis < 0 ? one : value_count_dim(graph, x, 0, axis));
  call_dim(call, "length", extent);
  call_dim(call, "count", found);
  call_dim(call, "inner", axis < 0 ? one : value_count_dim(graph, x, axis + 1, x->rank));
  call_argument(call, "fault", "NULL");
  call_cost(call, 0, 2 * (double)dim_optimum(value_count_dim(graph, y, 0, y->rank)) * (double)dtype_size(x->dtype));
}

static void emit_measured(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  if (is_compress(node)) {
    emit_compress(emitter, node);
    return;
  }
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *n = value_count_dim(graph, x, 0, x->rank);
  const char *to = arena_format(emitter_arena(emitter), "t%d", y->id);
  emit_nonzero(emitter, node, x, x->rank ? x->rank : 1, x->rank ? x->shape : &n, n, y->shape[1], to);
}

const KernelFamily family_measured = {.name = "measured", .scratch = measured_scratch, .emit = emit_measured};
