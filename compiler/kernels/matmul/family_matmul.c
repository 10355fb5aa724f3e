/* SPDX-License-Identifier: MIT */
/*
 * MatMul and Gemm as one product, C[batch][M][N] = alpha A B + beta D: each operand is a pointer and strides, so
 * transposition, vectors and broadcasting cost nothing. In f32 B is packed into panels, at compile time if it is
 * constant, else by a kernel; integers and f64 use plain loops.
 */
#include "ir/family.h"
#include "ir/narrow.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gemm/narrow_panels.h"
#include "kernels/matmul/product.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"

typedef struct MatmulSchedule {
  Schedule base;
  Product product;
  bool plain;       /* integers and f64: loops without panels */
  bool in_matrices; /* products of bf16 */
  GemmKnobs knobs;
  const Dim *packed_floats; /* of one matrix of B */
  NarrowPanels packed;      /* B, if it is constant, or no iteration of the loop around changes it */
} MatmulSchedule;

/* ---- epilogues: an addend, if the node has none of its own, then element-wise steps ---- */

static bool is_gemm(const Node *node) { return node->op->max_inputs == 3; }

/* One element for each column, the same for all rows. */
static bool is_row(const Value *value, const Value *sum) {
  if (value->rank < 1 || !same_dim(value->shape[value->rank - 1], sum->shape[sum->rank - 1])) return false;
  for (int axis = 0; axis < value->rank - 1; axis++)
    if (!dim_equals(value->shape[axis], 1)) return false;
  return true;
}

static bool is_matrix(const Value *value, const Value *sum) { return value->rank == 2 && shapes_agree(value, sum); }

/* Is the step the sum of the product, with columns as last axis, and a value that the kernel can add? */
static bool is_addition(const Node *host, const Node *step) {
  bool columns = host->inputs[0]->rank > 1 && host->inputs[1]->rank > 1;
  bool own = node_input(host, 2) && is_gemm(host);
  if (!is_op(step, OP_Add) || !columns || own) return false;
  return is_row(step->inputs[1], step->inputs[0]) || is_matrix(step->inputs[1], step->inputs[0]);
}

static bool takes_epilogue(const Node *host, const Node *step) {
  if (step->inputs[0]->dtype != RNNCC_F32) return false;
  return elementwise_is_epilogue(step) || (host->n_epilogue == 0 && is_addition(host, step));
}

/* ---- the product of a node ---- */

/* c broadcasts to [M, N]; of an epilogue it may have more leading axes, all of length 1. */
static void set_addend(Graph *graph, Product *p, const Value *c) {
  const Dim *one = one_of(graph), *zero = zero_of(graph);
  if (!c || p->beta == 0) return;
  const Dim *columns = c->rank > 0 ? c->shape[c->rank - 1] : one, *rows = c->rank > 1 ? c->shape[c->rank - 2] : one;
  p->addend = c;
  p->addend_row = rows == one ? zero : columns;
  p->addend_column = columns == one && p->n != one ? zero : one;
}

static Product matmul_product(Graph *graph, const Node *node) {
  Product p = product_of(graph, node->inputs[0], node->inputs[1], node->outputs[0]);
  set_addend(graph, &p, epilogue_addend(node));
  return p;
}

static Product gemm_product(Graph *graph, const Node *node) {
  const Dim **a = node->inputs[0]->shape, **b = node->inputs[1]->shape, *one = one_of(graph);
  bool a_turned = node_int(node, ATTR_transA), b_turned = node_int(node, ATTR_transB);
  Product p = {.m = a[a_turned], .k = a[!a_turned], .n = b[!b_turned], .b_matrices = one};
  p.a_row = a_turned ? one : p.k;
  p.a_depth = a_turned ? p.m : one;
  p.b_column = b_turned ? p.k : one;
  p.b_depth = b_turned ? one : p.n;
  p.alpha = node_float(node, ATTR_alpha);
  p.beta = node_float(node, ATTR_beta);
  const Value *fused = epilogue_addend(node);
  if (fused) p.beta = 1;
  set_addend(graph, &p, fused ? fused : node_input(node, 2));
  return p;
}

/* ---- schedule and packing ---- */

/* How the kernel keeps B, if that is one matrix; NULL: in f32. */
static const NarrowWeights *narrow_of(const Node *node) {
  const Value *b = node->inputs[1];
  bool turned = is_gemm(node) && node_int(node, ATTR_transB);
  if (b->rank != 2 || !b->narrow) return NULL;
  return narrow_columns(b, dim_value(b->shape[turned]), turned ? 1 : dim_value(b->shape[1]));
}

static Panels panels_of(const Graph *graph, const MatmulSchedule *s) {
  const Product *p = &s->product;
  return (Panels){.lanes = graph->config->target->lanes,
                  .vectors = s->knobs.vectors,
                  .gates = 1,
                  .unit_vectors = s->knobs.vectors,
                  .in_matrices = s->in_matrices,
                  .directions = 1,
                  .units = dim_upper(p->n),
                  .depth = dim_upper(p->k),
                  .column_stride = dim_upper(p->b_column),
                  .depth_stride = dim_upper(p->b_depth)};
}

static const Dim *packed_floats(Graph *graph, const MatmulSchedule *s) {
  int64_t width = (int64_t)s->knobs.vectors * graph->config->target->lanes;
  const Dim *w = dim_const(graph->dims, width), *less = dim_const(graph->dims, width - 1);
  const Dim *panels = dim_div(graph->dims, dim_add(graph->dims, s->product.n, less), w);
  return dim_mul(graph->dims, dim_mul(graph->dims, panels, w), s->product.k);
}

static void choose_knobs(Graph *graph, const Node *node, MatmulSchedule *s) {
  const Product *p = &s->product;
  const NarrowWeights *narrow = narrow_of(node);
  GemmKnobs knobs = gemm_knobs(graph, dim_optimum(p->n), dim_optimum(p->k), p->m);
  s->in_matrices = weights_in_matrices(graph->config->target, narrow, dim_upper(p->m), dim_upper(p->k));
  s->knobs = s->in_matrices ? gemm_knobs_in_matrices(graph, knobs.vectors, p->m, weights_row_parts(narrow))
                            : narrow_gemm_knobs(graph, knobs, p->m, narrow);
}

static void schedule(Graph *graph, Node *node) {
  MatmulSchedule *s = ARENA_NEW(graph->arena, MatmulSchedule);
  s->product = is_gemm(node) ? gemm_product(graph, node) : matmul_product(graph, node);
  s->plain = node->outputs[0]->dtype != RNNCC_F32;
  choose_knobs(graph, node, s);
  s->packed_floats = packed_floats(graph, s);
  s->base.text = s->plain ? "plain"
                          : arena_format(graph->arena, "n%lldk%lld_v%dr%d", (long long)dim_upper(s->product.n),
                                         (long long)dim_upper(s->product.k), s->knobs.vectors, s->knobs.rows.most);
  node->schedule = &s->base;
}

static const Dim *all_packed_floats(Graph *graph, const MatmulSchedule *s) {
  return dim_mul(graph->dims, s->packed_floats, s->product.b_matrices);
}

static bool packs_at_run_time(const Node *node) {
  return !((const MatmulSchedule *)node->schedule)->plain && !value_is_constant(node->inputs[1]);
}

static void scratch(Graph *graph, Node *node) {
  const MatmulSchedule *s = (const MatmulSchedule *)node->schedule;
  if (s->in_matrices)
    graph_scratch(graph, node, "rounded A", rounded_bytes(graph, s->product.m, s->product.k, s->knobs.row_parts));
  if (!packs_at_run_time(node)) return;
  graph_scratch(graph, node, "packed B",
                dim_mul(graph->dims, all_packed_floats(graph, s), dim_const(graph->dims, sizeof(float))));
}

static void pack(Graph *graph, Node *node) {
  MatmulSchedule *s = (MatmulSchedule *)node->schedule;
  if (s->plain || packs_at_run_time(node)) return;
  Panels panels = panels_of(graph, s);
  if (narrow_of(node)) {
    s->packed = packed_narrow(graph, "packed B", &panels, node->inputs[1], 0);
    graph_pack(graph, node, s->packed.packed);
    if (s->packed.scales) graph_pack(graph, node, s->packed.scales);
    return;
  }
  int64_t matrices = dim_value(s->product.b_matrices), floats = panels_floats(&panels), all = matrices * floats;
  float *data = ARENA_ARRAY(graph->arena, float, all ? all : 1);
  const float *source = node->inputs[1]->data;
  for (int64_t i = 0; i < matrices; i++)
    panels_pack(&panels, source + i * panels.units * panels.depth, NULL, data + i * floats);
  s->packed.packed = graph_constant(graph, "packed B", RNNCC_F32, 1, &all, data);
  graph_pack(graph, node, s->packed.packed);
}

/* ---- lowering ---- */

static void give_cost(Call *call, const Node *node, const MatmulSchedule *s) {
  const Product *p = &s->product;
  double size = (double)dtype_size(node->outputs[0]->dtype);
  const Value *b = node->inputs[1];
  product_cost(call, p, size, b->narrow ? (double)weights_size(b->narrow) : size, size);
  if (node->outputs[0]->dtype == RNNCC_F32) weights_products(call, b->narrow, s->in_matrices);
}

static void lower_plain(Program *program, Node *node, const MatmulSchedule *s) {
  const Product *p = &s->product;
  Graph *graph = program->graph;
  KernelSpec *spec = kernel_spec(program, "matmul_plain");
  kernel_type(spec, "T", node->outputs[0]->dtype);
  kernel_type(spec, "Total", dtype_is_float(node->outputs[0]->dtype) ? RNNCC_F64 : RNNCC_U64);
  kernel_knob(spec, "ADDEND", p->addend != NULL);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "a", node->inputs[0], READ);
  operand_value(call, "b", node->inputs[1], READ);
  operand_value(call, "addend", p->addend, READ);
  operand_value(call, "c", node->outputs[0], WRITE);
  operand_float(call, "alpha", p->alpha);
  operand_float(call, "beta", p->beta);
  const Dim *zero = zero_of(graph), *row = p->addend ? p->addend_row : zero;
  const Dim *column = p->addend ? p->addend_column : zero;
  product_dims(call,
               (const char *const[]){"m", "n", "k", "a_row", "a_depth", "b_depth", "b_column", "addend_row",
                                     "addend_column", NULL},
               (const Dim *const[]){p->m, p->n, p->k, p->a_row, p->a_depth, p->b_depth, p->b_column, row, column});
  product_batches(call, graph, p, dim_mul(graph->dims, p->n, p->k));
  give_cost(call, node, s);
}

static void lower_packing_of_b(Program *program, const Node *node, const MatmulSchedule *s, const Value *b,
                               const Value *packed) {
  Graph *graph = program->graph;
  const Product *p = &s->product;
  Panels panels = panels_of(graph, s);
  Call *call = lower_packing(program, node, &panels, false);
  operand_value(call, "source", b, READ);
  operand_null(call, "addend");
  operand_value(call, "target", packed, WRITE);
  const Dim *matrix = dim_mul(graph->dims, p->n, p->k);
  product_dims(
      call, (const char *const[]){"batches", "batch_stride", "units", "depth", "column_stride", "depth_stride", NULL},
      (const Dim *const[]){p->b_matrices, matrix, p->n, p->k, p->b_column, p->b_depth});
  call_bytes(call, 8, EXTENTS(matrix, p->b_matrices));
}

/* A call of the kernel, without what only products of f32 have. */
static Call *lower_product(Program *program, Node *node, const MatmulSchedule *s, const Value *b, KernelSpec *spec) {
  Graph *graph = program->graph;
  const Product *p = &s->product;
  bool scaled = p->alpha != 1 || (p->addend && p->beta != 1);
  kernel_knob(spec, "SCALED", scaled);
  kernel_knob(spec, "ADDEND", !p->addend ? 0 : p->addend_column == zero_of(graph) ? 2 : 1);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "a", node->inputs[0], READ);
  operand_value(call, "b", b, READ);
  operand_value(call, "addend", p->addend, READ);
  operand_value(call, "c", node->outputs[0], WRITE);
  operand_float(call, "scale", p->alpha);
  operand_float(call, "addend_scale", p->beta);
  const Dim *addend_row = p->addend ? p->addend_row : zero_of(graph);
  product_dims(call, (const char *const[]){"m", "n", "k", "a_row", "a_depth", "addend_row", "c_row", NULL},
               (const Dim *const[]){p->m, p->n, p->k, p->a_row, p->a_depth, addend_row, p->n});
  give_cost(call, node, s);
  return call;
}

static void lower_floats(Program *program, Node *node, const MatmulSchedule *s, const Value *b) {
  KernelSpec *spec = gemm_spec(program->arena, &s->knobs);
  weights_knobs(spec, narrow_of(node));
  Call *call = lower_product(program, node, s, b, spec);
  operand_value(call, "scales", s->packed.scales, READ);
  product_batches(call, program->graph, &s->product, s->packed_floats);
}

static void lower_rounded(Program *program, Node *node, const MatmulSchedule *s) {
  Call *call = lower_product(program, node, s, s->packed.packed, gemm_bf16_spec(program->arena, &s->knobs));
  operand_value(call, "rounded", node->scratch, READ_WRITE);
}

static void lower_once(Program *program, Node *node, Value *const *outer) {
  MatmulSchedule *s = (MatmulSchedule *)node->schedule;
  if (!packs_at_run_time(node) || s->packed.packed || !outer[1]) return;
  Value *packed = program_floats(program, "packed B", all_packed_floats(program->graph, s));
  lower_packing_of_b(program, node, s, outer[1], packed);
  s->packed.packed = packed;
}

static void lower_node(Program *program, Node *node) {
  const MatmulSchedule *s = (const MatmulSchedule *)node->schedule;
  if (s->plain) {
    lower_plain(program, node, s);
  } else if (s->in_matrices) {
    lower_rounded(program, node, s);
  } else if (s->packed.packed) {
    lower_floats(program, node, s, s->packed.packed);
  } else {
    lower_packing_of_b(program, node, s, node->inputs[1], node->scratch);
    lower_floats(program, node, s, node->scratch);
  }
}

static void dump_knobs(Text *out, const Graph *graph, const Node *node) {
  (void)graph;
  const MatmulSchedule *s = (const MatmulSchedule *)node->schedule;
  if (s && !s->plain) gemm_dump(out, &s->knobs);
}

const KernelFamily family_matmul = {
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .takes_epilogue = takes_epilogue,
    .dump_knobs = dump_knobs,
    .lower_once = lower_once,
    .lower = lower_node,
};
