/* SPDX-License-Identifier: MIT */
/* Fused attention: blocks of queries, which the workers share, or of one query a batch, batches. */
#include "ir/family.h"
#include "kernels/attention/fused_attention.h"
#include "kernels/gemm/gemm.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"

const OpInfo op_fused_attention = {
    .kind = OP_FusedAttention,
    .name = "FusedAttention",
    .min_inputs = 3,
    .max_inputs = 4,
    .min_outputs = 1,
    .max_outputs = 1,
    .attributes = (const AttributeSpec[]){{0}},
    .layout = LAYOUT_DEPENDENT,
    .family = &family_attention,
};

typedef struct AttentionSchedule {
  Schedule base;
  int vectors; /* of queries in a block; 0: there is one query */
  int64_t keys, query_blocks;
  BlockRows rows, out_rows;
} AttentionSchedule;

/* A block's weights stay in the first level of the cache, or near the front of the second. */
enum { MAX_KEYS = 256, WEIGHT_FLOATS = 16384 };
enum { LINE_FLOATS = 16 };

static int64_t block_width(const Graph *graph, const AttentionSchedule *s) {
  return (int64_t)s->vectors * graph->config->target->lanes;
}

/* Tiles of keys in whole blocks, and in the last one. */
static BlockRows key_rows(Graph *graph, const FusedAttention *a, int64_t keys, int most) {
  const Dim *block = dim_const(graph->dims, keys);
  if (!dim_is_const(a->keys)) return (BlockRows){.least = 1, .most = (int)min_int(most, keys)};
  int64_t all = dim_value(a->keys), rest = all % keys;
  BlockRows rows = block_rows(most, block, 1), last = block_rows(most, dim_const(graph->dims, rest ? rest : keys), 1);
  return (BlockRows){.least = (int)min_int(rows.least, last.least), .most = (int)max_int(rows.most, last.most)};
}

/* Floats from one row of copied keys or values to the next, as the template has it. */
static int64_t copied_row(int64_t columns) { return (ceil_div(columns, LINE_FLOATS) | 1) * LINE_FLOATS; }

static int64_t copied_floats(const FusedAttention *a) {
  return copied_row(dim_value(a->depth)) + copied_row(dim_value(a->width));
}

/* Do other heads stand between a row and the next one? */
static bool is_apart(const AttentionOperand *operand, const Dim *columns) {
  return dim_optimum(operand->row) > 2 * dim_value(columns);
}

/* Blocks of queries of a worker's share of one batch. */
static int64_t blocks_of_worker(const Graph *graph, const AttentionSchedule *s, const FusedAttention *a) {
  int64_t blocks = ceil_div(dim_optimum(a->queries), block_width(graph, s)), all = blocks;
  for (int i = 0; i < a->batch_rank; i++) all = saturating_mul(all, dim_optimum(a->batch[i]));
  return min_int(blocks, all / graph->config->machine->cores);
}

/* Keys are copied for several blocks of queries, if heads stand side by side and there are blocks enough. Where
 * registers are many, a block is wide enough to read keys where they stand. A block's weights, and what a tile of
 * results reads, take half of the first level of the cache; the copies and the blocks in hand half of the second. */
static void choose_copies(const Graph *graph, AttentionSchedule *s, const FusedAttention *a) {
  enum { ENOUGH = 16, LEAST = 4, MOST = 32, LEAST_KEYS = 16 };
  const Target *target = graph->config->target;
  int64_t blocks = blocks_of_worker(graph, s, a), block = block_width(graph, s);
  s->query_blocks = 1;
  if (!target_has_few_registers(target) || blocks < ENOUGH) return;
  if (!is_apart(&a->k, a->depth) && !is_apart(&a->v, a->width)) return;
  int64_t l1_floats = target->l1_bytes / (int64_t)sizeof(float), l2_floats = target->l2_bytes / (int64_t)sizeof(float);
  s->keys = min_int(s->keys, max_int(LEAST_KEYS, l1_floats / 2 / (block + LINE_FLOATS)));
  int64_t each = (dim_value(a->depth) + dim_value(a->width)) * block;
  s->query_blocks = min_int(blocks, clamp_int(LEAST, (l2_floats / 2 - s->keys * copied_floats(a)) / each, MOST));
}

static void schedule(Graph *graph, Node *node) {
  AttentionSchedule *s = ARENA_NEW(graph->arena, AttentionSchedule);
  const FusedAttention *a = node->attention;
  const Target *target = graph->config->target;
  node->schedule = &s->base;
  if (dim_equals(a->queries, 1)) {
    s->keys = dim_upper(a->keys);
    s->base.text =
        arena_format(graph->arena, "d%llde%lld_row", (long long)dim_value(a->depth), (long long)dim_value(a->width));
    return;
  }
  s->vectors = gemm_panel_vectors(target, dim_optimum(a->queries));
  s->keys = clamp_int(16, WEIGHT_FLOATS / block_width(graph, s), MAX_KEYS);
  s->keys = min_int(s->keys, dim_upper(a->keys));
  choose_copies(graph, s, a);
  s->rows = key_rows(graph, a, s->keys, register_rows(target, s->vectors));
  s->out_rows = block_rows(register_rows(target, s->vectors), a->width, 1);
  s->base.text = arena_format(graph->arena, "d%llde%lld_v%dk%lldr%d", (long long)dim_value(a->depth),
                              (long long)dim_value(a->width), s->vectors, (long long)s->keys, s->rows.most);
}

static int64_t slot_bytes(const Graph *graph, const Node *node) {
  const AttentionSchedule *s = (const AttentionSchedule *)node->schedule;
  if (!s->vectors) return saturating_mul(s->keys, (int64_t)sizeof(float));
  int64_t depth = dim_value(node->attention->depth), width = dim_value(node->attention->width);
  int64_t copies = s->query_blocks > 1 ? s->keys * copied_floats(node->attention) : 0;
  return ((s->keys + s->query_blocks * (depth + width)) * block_width(graph, s) + copies) * (int64_t)sizeof(float);
}

static void scratch(Graph *graph, Node *node) {
  graph_slots(graph, node, graph->config->machine->cores, slot_bytes(graph, node));
}

/* ---- lowering ---- */

static int mask_kind(const Node *node) {
  const AttentionOperand *mask = &node->attention->mask;
  if (node->n_inputs < 4) return 0;
  return dim_equals(mask->row, 0) ? 1 : dim_equals(mask->row, 1) ? 3 : 2;
}

static KernelSpec *spec_of(Program *program, const Node *node, const AttentionSchedule *s) {
  if (!s->vectors) {
    KernelSpec *row = kernel_spec(program, "attention_row");
    kernel_knob(row, "MASK", mask_kind(node) != 0);
    kernel_knob(row, "BLIND_ZERO", node->attention->blind_zero);
    return row;
  }
  KernelSpec *spec = kernel_spec(program, "attention");
  kernel_knob(spec, "VECTORS", s->vectors);
  kernel_knob(spec, "ROWS", s->rows.most);
  kernel_knob(spec, "MIN_ROWS", s->rows.least);
  kernel_knob(spec, "OUT_ROWS", s->out_rows.most);
  kernel_knob(spec, "MIN_OUT_ROWS", s->out_rows.least);
  kernel_knob(spec, "KEYS", s->keys);
  kernel_knob(spec, "QUERY_BLOCKS", s->query_blocks);
  kernel_knob(spec, "MASK", mask_kind(node));
  kernel_knob(spec, "BLIND_ZERO", node->attention->blind_zero);
  kernel_knob(spec, "BAND", node->attention->banded);
  return spec;
}

static void give_matrix(Call *call, const char *name, const Value *value, const AttentionOperand *operand) {
  if (value)
    operand_elements(call, name, value, operand->offset, NULL, READ);
  else
    operand_null(call, name);
}

/* What all kernels have: the matrices, and where their rows stand. */
static void give_matrices(Program *program, Call *call, const Node *node) {
  const FusedAttention *a = node->attention;
  const Value *mask = node_input(node, 3);
  give_matrix(call, "q", node->inputs[0], &a->q);
  give_matrix(call, "k", node->inputs[1], &a->k);
  give_matrix(call, "v", node->inputs[2], &a->v);
  give_matrix(call, "mask", mask, &a->mask);
  operand_dim(call, "k_row", a->k.row);
  operand_dim(call, "v_row", a->v.row);
  operand_dim(call, "mask_column", mask ? a->mask.column : dim_const(program->graph->dims, 0));
  operand_value(call, "y", node->outputs[0], WRITE);
}

/* And those of blocks of queries. */
static void give_blocks(Program *program, Call *call, const Node *node) {
  const FusedAttention *a = node->attention;
  operand_dim(call, "q_row", a->q.row);
  operand_dim(call, "q_column", a->q.column);
  operand_dim(call, "k_column", a->k.column);
  operand_dim(call, "v_column", a->v.column);
  operand_dim(call, "mask_row", node_input(node, 3) ? a->mask.row : dim_const(program->graph->dims, 0));
  operand_dim(call, "y_row", a->y.row);
  operand_dim(call, "queries", a->queries);
}

static void give_batches(Program *program, Call *call, const FusedAttention *a) {
  const AttentionOperand *operands[] = {&a->q, &a->k, &a->v, &a->mask, &a->y};
  const Dim *strides[5 * MAX_RANK], *zero = dim_const(program->graph->dims, 0);
  int n = 0;
  for (int k = 0; k < 5; k++)
    for (int i = 0; i < a->batch_rank; i++) strides[n++] = operands[k]->batch[i] ? operands[k]->batch[i] : zero;
  operand_integer(call, "batch_rank", a->batch_rank);
  operand_dim_array(call, "batch_dims", a->batch_rank, a->batch);
  operand_dim_array(call, "strides", n, strides);
}

static void give_band(Program *program, Call *call, const FusedAttention *a) {
  const Dim *zero = dim_const(program->graph->dims, 0);
  operand_dim(call, "low", a->banded ? a->low : zero);
  operand_dim(call, "high", a->banded ? a->high : zero);
  operand_dim(call, "period", a->banded ? a->period : zero);
}

static void give_cost(Call *call, const Node *node) {
  const FusedAttention *a = node->attention;
  double seen = a->banded ? a->seen : 1, products = (double)(dim_value(a->depth) + dim_value(a->width));
  const Dim *extents[MAX_RANK + 3] = {a->queries, a->keys};
  for (int i = 0; i < a->batch_rank; i++) extents[2 + i] = a->batch[i];
  call_flops(call, 2 * seen * products, extents);
  call_products(call, RNNCC_F32);
  for (int i = 0; i < node->n_inputs; i++) call_touches(call, node->inputs[i]);
  call_touches(call, node->outputs[0]);
}

static void lower_attention(Program *program, Node *node) {
  Graph *graph = program->graph;
  const AttentionSchedule *s = (const AttentionSchedule *)node->schedule;
  const FusedAttention *a = node->attention;
  Call *call = kernel_call(program, node, spec_of(program, node, s));
  give_matrices(program, call, node);
  if (s->vectors) give_blocks(program, call, node);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_float(call, "scale", a->scale);
  operand_dim(call, "keys", a->keys);
  operand_dim(call, "depth", a->depth);
  operand_dim(call, "width", a->width);
  give_batches(program, call, a);
  if (s->vectors) give_band(program, call, a);
  operand_integer(call, "slots", graph->config->machine->cores);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(graph, node)) / (int64_t)sizeof(float));
  give_cost(call, node);
}

static void dump_knobs(Text *out, const Graph *graph, const Node *node) {
  (void)graph;
  const AttentionSchedule *s = (const AttentionSchedule *)node->schedule;
  if (s && s->vectors)
    text_add(out, "  attention vectors=%d,keys=%lld,query_blocks=%lld,rows=%d..%d,out_rows=%d..%d\n", s->vectors,
             (long long)s->keys, (long long)s->query_blocks, s->rows.least, s->rows.most, s->out_rows.least,
             s->out_rows.most);
}

const KernelFamily family_attention = {
    .schedule = schedule,
    .scratch = scratch,
    .dump_knobs = dump_knobs,
    .lower = lower_attention,
};
