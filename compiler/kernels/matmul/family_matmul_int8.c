/* SPDX-License-Identifier: MIT */
/*
 * Matrix products of 8-bit numbers (ir/integer_product.h) by templates/gemm_int8.c, or gemm_int8_matrices.c, where the
 * target has matrices in registers and there are rows for them. B is packed as s8 with its column
 * sums, which stand for A's zero point: at compile time if it is constant, else by a kernel. Scales that are constants
 * become one row; of a result in f32 those of A and B may be known in a run only.
 */
#include "ir/family.h"
#include "ir/integer_product.h"
#include "ir/tensor.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/int8_panels.h"
#include "kernels/matmul/product.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/numbers.h"

typedef struct Int8Schedule {
  Schedule base;
  Product product;
  CentredWeights weights;
  Int8Panels panels;
  bool pairs; /* DOT_PAIRS */
  int tiles;  /* of a block of matrices */
  BlockRows rows;
  int group;
  Value *packed, *scale; /* scale: NULL, or one for all columns or each */
} Int8Schedule;

static bool turned(const Node *node) { return node->op->kind == OP_QGemm && node_int(node, ATTR_transB) != 0; }

/* ---- epilogues: a sum, then element-wise steps, of results in f32 ---- */

/* One row for all, or of the result's shape. */
static bool is_addition(const Node *step) {
  const Value *sum = step->inputs[0], *other = is_op(step, OP_Add) ? step->inputs[1] : NULL;
  if (!other || sum->rank < 1 || other->rank < 1 || other->rank > sum->rank) return false;
  if (shapes_agree(other, sum)) return true;
  if (!same_dim(other->shape[other->rank - 1], sum->shape[sum->rank - 1])) return false;
  for (int axis = 0; axis < other->rank - 1; axis++)
    if (!dim_equals(other->shape[axis], 1)) return false;
  return true;
}

/* Batches of A are rows where B is one matrix: then all of the result is one matrix. */
static bool is_one_matrix(const Node *host) {
  const Value *b = host->inputs[product_inputs(host)->b], *y = host->outputs[0];
  for (int axis = 0; axis < b->rank - 2; axis++)
    if (!dim_equals(b->shape[axis], 1)) return false;
  return y->rank > 1;
}

static bool takes_epilogue(const Node *host, const Node *step) {
  if (host->outputs[0]->dtype != RNNCC_F32 || step->inputs[0]->dtype != RNNCC_F32) return false;
  return elementwise_is_epilogue(step) || (host->n_epilogue == 0 && is_one_matrix(host) && is_addition(step));
}

/* ---- schedule ---- */

static bool by_matrices(const Target *target, const Product *p) {
  return product_in_matrices(target, dim_optimum(p->m), dim_optimum(p->n), dim_value(p->k));
}

/* Vectors of a panel. Up to four matrices hold sums: where there are more rows than one has, two by two, so that what
 * is loaded is multiplied twice. */
static int matrix_vectors(const Product *p, int lanes) {
  int64_t vectors = ceil_div(dim_optimum(p->n), lanes);
  int most = dim_upper(p->m) > MATRIX_ROWS ? MATRIX_SUMS / 2 : MATRIX_SUMS;
  return (int)min_int(vectors > 2 ? MATRIX_SUMS : vectors, most);
}

/* Besides the sums a block needs registers for the panel's weights and the broadcast input; without an instruction for
 * dot products each as two vectors of 16 bits, or products of pairs and a vector of ones; and one for what is between.
 * Of tiles, which are of two rows, also for what inputs are made of. */
static int most_rows(const Target *target, const Int8Schedule *s) {
  enum { MAX_ROWS = 8 };
  int vectors = s->panels.vectors;
  bool dot = target->has_dot && !s->panels.tiles, row_sums = s->weights.zero != 0;
  int other = dot ? vectors + 1 : s->pairs && !s->panels.tiles ? vectors + 3 : 2 * vectors + 3;
  int rows = (target->vector_registers - other) / (vectors + row_sums);
  if (s->panels.tiles) rows = rows / 2 * 2;
  return (int)clamp_int(1 + s->panels.tiles, rows, MAX_ROWS);
}

/* Is it made in tiles? One row alone would fill half of each: dot products do the same in as many instructions. */
static bool in_tiles(const Target *target, const Product *p) { return target->has_tiles && dim_optimum(p->m) > 1; }

static Product product_of_node(Graph *graph, const Node *node) {
  const ProductInputs *at = product_inputs(node);
  const Value *b = node->inputs[at->b];
  Product p = product_of(graph, node->inputs[at->a], b, node->outputs[0]);
  if (turned(node)) {
    p.n = b->shape[0];
    p.b_column = p.k;
    p.b_depth = one_of(graph);
  }
  return p;
}

/* Of B that only the run knows: what its zero point is in s8. */
static CentredWeights weights_of(Graph *graph, const Node *node) {
  const ProductInputs *at = product_inputs(node);
  const Value *b = node->inputs[at->b], *zero = node_input(node, at->b_zero);
  if (b->data) return centred_weights(graph->arena, b, zero, turned(node));
  return (CentredWeights){.zero = (zero ? (int)value_element(zero, 0) : 0) - (b->dtype == RNNCC_U8 ? 128 : 0)};
}

static bool all_pairs_fit(const Int8Schedule *s) {
  if (!s->weights.numbers) return false;
  int64_t matrices = dim_value(s->product.b_matrices), size = s->panels.columns * s->panels.depth;
  for (int64_t i = 0; i < matrices; i++)
    if (!int8_pairs_fit(&s->panels, s->weights.numbers + i * size)) return false;
  return true;
}

/* Panels of a single row that are multiplied at once: enough sums to hide the latency of a dot product. */
static int row_group(const Target *target, const Int8Panels *panels) {
  int most = target_has_few_registers(target) ? 8 : 16, group = 1;
  int64_t count = (panels->columns - 1) / ((int64_t)panels->vectors * panels->lanes) + 1;
  while (2 * group * panels->vectors <= most && 2 * group <= count && group < 8) group *= 2;
  return group;
}

static const char *schedule_text(const Graph *graph, const Int8Schedule *s) {
  if (s->panels.matrices)
    return arena_format(graph->arena, "matrices_int8_n%lldk%lld_v%dt%d", (long long)s->panels.columns,
                        (long long)s->panels.depth, s->panels.vectors, s->tiles);
  const char *form = s->panels.tiles ? "tiles" : graph->config->target->has_dot ? "dot" : s->pairs ? "pairs" : "wide";
  return arena_format(graph->arena, "int8_n%lldk%lld_v%dr%d%s", (long long)s->panels.columns,
                      (long long)s->panels.depth, s->panels.vectors, s->rows.most, form);
}

static void choose_matrices(const Target *target, Int8Schedule *s) {
  s->panels.matrices = true;
  s->panels.tiles = false;
  s->panels.vectors = matrix_vectors(&s->product, target->lanes);
  s->tiles = MATRIX_SUMS / s->panels.vectors;
}

static void schedule(Graph *graph, Node *node) {
  const Target *target = graph->config->target;
  Int8Schedule *s = ARENA_NEW(graph->arena, Int8Schedule);
  s->product = product_of_node(graph, node);
  s->weights = weights_of(graph, node);
  s->panels = (Int8Panels){.lanes = target->lanes,
                           .tiles = in_tiles(target, &s->product),
                           .vectors = gemm_panel_vectors(target, dim_optimum(s->product.n)),
                           .columns = dim_upper(s->product.n),
                           .depth = dim_value(s->product.k),
                           .column_stride = dim_upper(s->product.b_column),
                           .depth_stride = dim_upper(s->product.b_depth)};
  if (by_matrices(target, &s->product)) choose_matrices(target, s);
  s->pairs = !target->has_dot && !s->panels.matrices && all_pairs_fit(s);
  int most = most_rows(target, s);
  s->rows = s->panels.tiles ? block_rows_in_tiles(graph, most, s->product.m, 1) : block_rows(most, s->product.m, 1);
  s->group = row_group(target, &s->panels);
  s->base.text = schedule_text(graph, s);
  node->schedule = &s->base;
}

/* ---- packing ---- */

/* The bytes of one matrix's panels. */
static const Dim *packed_bytes(Graph *graph, const Int8Schedule *s) {
  int64_t width = (int64_t)s->panels.vectors * s->panels.lanes;
  const Dim *panels = dim_div(graph->dims, dim_add(graph->dims, s->product.n, dim_const(graph->dims, width - 1)),
                              dim_const(graph->dims, width));
  int64_t panel = (round_up(s->panels.depth, int8_depth_unit(&s->panels)) + INT8_DOT) * width;
  return dim_mul(graph->dims, panels, dim_const(graph->dims, panel));
}

static void scratch(Graph *graph, Node *node) {
  const Int8Schedule *s = (const Int8Schedule *)node->schedule;
  if (s->weights.numbers) return;
  graph_scratch(graph, node, "packed B", dim_mul(graph->dims, packed_bytes(graph, s), s->product.b_matrices));
}

static void lower_packing_of_b(Program *program, const Node *node, const Int8Schedule *s) {
  const Product *p = &s->product;
  const Value *b = node->inputs[product_inputs(node)->b];
  KernelSpec *spec = kernel_spec(program, "pack_int8");
  kernel_type(spec, "B", b->dtype);
  kernel_knob(spec, "VECTORS", s->panels.vectors);
  kernel_knob(spec, "TILES", s->panels.tiles);
  kernel_knob(spec, "DEPTH_UNIT", int8_depth_unit(&s->panels));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "source", b, READ);
  operand_value(call, "target", node->scratch, WRITE);
  product_dims(call, (const char *const[]){"batches", "n", "k", NULL}, (const Dim *const[]){p->b_matrices, p->n, p->k});
  call_bytes_of(call, 2, b);
}

static void pack_weights_of(Graph *graph, Node *node, Int8Schedule *s) {
  int64_t matrices = dim_value(s->product.b_matrices), bytes = int8_panels_bytes(&s->panels), all = matrices * bytes;
  int64_t size = s->panels.columns * s->panels.depth;
  int8_t *data = ARENA_ARRAY(graph->arena, int8_t, all);
  for (int64_t i = 0; i < matrices; i++) int8_panels_pack(&s->panels, s->weights.numbers + i * size, data + i * bytes);
  s->packed = graph_constant(graph, "packed B", RNNCC_I8, 1, &all, data);
  graph_pack(graph, node, s->packed);
}

static float scale_at(const Value *scale, int64_t column) {
  return (float)value_element(scale, value_count(scale) > 1 ? column : 0);
}

/* As the operator rounds it. */
static float product_scale(const Node *node, const ProductInputs *at, int64_t column) {
  float scale = scale_at(node->inputs[at->a_scale], 0) * scale_at(node->inputs[at->b_scale], column);
  if (at->op == OP_QGemm) scale *= (float)node_float(node, ATTR_alpha);
  const Value *y = node_input(node, at->y_scale);
  return y ? scale / scale_at(y, 0) : scale;
}

/* Does only the run know them? */
static bool scales_of_run(const Node *node, const ProductInputs *at) {
  return at->addend >= 0 && (!node->inputs[at->a_scale]->data || !node->inputs[at->b_scale]->data);
}

static void pack_scales(Graph *graph, Node *node, Int8Schedule *s) {
  const ProductInputs *at = product_inputs(node);
  if (at->a_scale < 0 || scales_of_run(node, at)) return;
  int64_t count = value_count(node->inputs[at->b_scale]);
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) data[i] = product_scale(node, at, i);
  s->scale = graph_constant(graph, "scales", RNNCC_F32, 1, &count, data);
  graph_pack(graph, node, s->scale);
}

static void pack(Graph *graph, Node *node) {
  Int8Schedule *s = (Int8Schedule *)node->schedule;
  if (s->weights.numbers) pack_weights_of(graph, node, s);
  pack_scales(graph, node, s);
}

/* ---- lowering ---- */

static bool is_zero(const Value *zero) { return !zero || (zero->data && value_element(zero, 0) == 0); }

static void knobs_of_blocks(KernelSpec *spec, const Int8Schedule *s) {
  if (s->panels.matrices) {
    kernel_knob(spec, "TILES", s->tiles);
    return;
  }
  kernel_knob(spec, "ROWS", s->rows.most);
  kernel_knob(spec, "MIN_ROWS", s->rows.least);
  kernel_knob(spec, "GROUP", s->group);
  kernel_knob(spec, "FORM", s->pairs);
  kernel_knob(spec, "TILES", s->panels.tiles);
}

static KernelSpec *spec_of(Program *program, const Node *node, const Int8Schedule *s) {
  const ProductInputs *at = product_inputs(node);
  const Value *scale = s->scale ? s->scale : node_input(node, at->b_scale);
  KernelSpec *spec = kernel_spec(program, s->panels.matrices ? "gemm_int8_matrices" : "gemm_int8");
  kernel_type(spec, "A", node->inputs[at->a]->dtype);
  kernel_type(spec, "T", node->outputs[0]->dtype);
  kernel_knob(spec, "VECTORS", s->panels.vectors);
  knobs_of_blocks(spec, s);
  kernel_knob(spec, "A_ZERO", !is_zero(node_input(node, at->a_zero)));
  kernel_knob(spec, "B_ZERO", s->weights.zero != 0);
  kernel_knob(spec, "TAIL", s->panels.depth % int8_depth_unit(&s->panels));
  kernel_knob(spec, "BIAS", node_input(node, at->bias) != NULL);
  kernel_knob(spec, "SCALES", !scale ? 0 : value_max_count(scale) > 1 ? 2 : 1);
  kernel_knob(spec, "A_SCALE", at->a_scale >= 0 && !s->scale);
  kernel_knob(spec, "ADDEND", node_input(node, at->addend) != NULL);
  kernel_knob(spec, "RESIDUAL", epilogue_addend(node) != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  return spec;
}

static void lower_node(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Int8Schedule *s = (const Int8Schedule *)node->schedule;
  const ProductInputs *at = product_inputs(node);
  const Product *p = &s->product;
  const Value *y_zero = node_input(node, at->y_zero), *a_zero = node_input(node, at->a_zero),
              *residual = epilogue_addend(node);
  if (!s->packed) lower_packing_of_b(program, node, s);
  Call *call = kernel_call(program, node, spec_of(program, node, s));
  operand_value(call, "a", node->inputs[at->a], READ);
  operand_value(call, "b", s->packed ? s->packed : node->scratch, READ);
  operand_value(call, "a_zero", is_zero(a_zero) ? NULL : a_zero, READ);
  operand_integer(call, "b_zero", s->weights.zero);
  operand_value(call, "bias", node_input(node, at->bias), READ);
  operand_value(call, "a_scale", s->scale ? NULL : node_input(node, at->a_scale), READ);
  operand_value(call, "scale", s->scale ? s->scale : node_input(node, at->b_scale), READ);
  operand_value(call, "addend", node_input(node, at->addend), READ);
  operand_value(call, "residual", residual, READ);
  operand_value(call, "c", node->outputs[0], WRITE);
  operand_integer(call, "c_zero", y_zero ? (int64_t)value_element(y_zero, 0) : 0);
  bool by_rows = residual && shapes_agree(residual, node->outputs[0]);
  product_dims(call, (const char *const[]){"m", "n", "k", "residual_row", NULL},
               (const Dim *const[]){p->m, p->n, p->k, by_rows ? p->n : zero_of(graph)});
  product_batches(call, graph, p, packed_bytes(graph, s));
  product_cost(call, p, 1, 1, (double)dtype_size(node->outputs[0]->dtype));
  call_products(call, RNNCC_I8);
}

static void dump_knobs(Text *out, const Graph *graph, const Node *node) {
  (void)graph;
  const Int8Schedule *s = (const Int8Schedule *)node->schedule;
  if (s && s->panels.matrices)
    text_add(out, "  product matrices,tiles=%d,vectors=%d\n", s->tiles, s->panels.vectors);
  else if (s)
    text_add(out, "  product rows=%d..%d,vectors=%d,group=%d,pairs=%d\n", s->rows.least, s->rows.most,
             s->panels.vectors, s->group, s->pairs);
}

const KernelFamily family_matmul_int8 = {
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .takes_epilogue = takes_epilogue,
    .dump_knobs = dump_knobs,
    .lower = lower_node,
};
