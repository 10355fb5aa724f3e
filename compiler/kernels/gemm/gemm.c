/* SPDX-License-Identifier: MIT */
#include "kernels/gemm/gemm.h"

#include "machine/machine.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"
#include "template/specialise.h"

/* Eight independent sums hide the latency of an addition; each further row is another variant to compile. */
enum { MAX_ROWS = 8 };

/* K is never split: the maximum of the template's knob. */
enum { MAX_DEPTH = 1 << 20 };

/* Besides the sums a block needs a register for each vector of the panel, and one for the broadcast element. Where a
 * product takes the place of an operand, all but an element's last need another. Where elements are lanes: one for each
 * row's elements, and two for the panel. A row there is, even if not all of it fits. */
int register_rows(const Target *target, int vectors) {
  int registers = target->vector_registers - (target->two_operands && vectors > 1);
  int rows = target->lane_operands ? (registers - 2) / (vectors + 1) : (registers - vectors - 1) / vectors;
  return (int)clamp_int(1, rows, MAX_ROWS);
}

/* Besides the sums of each two rows their input is in a register, and two of weights are. */
int register_rows_in_tiles(const Target *target, int vectors) {
  enum { WEIGHTS = 2 };
  return 2 * (int)clamp_int(1, (target->vector_registers - WEIGHTS) / (2 * vectors + 1), MAX_ROWS / 2);
}

/* Sums in registers for one row: enough to hide the latency of two additions a cycle. */
enum { ROW_SUMS_MANY = 16, ROW_SUMS_FEW = 8 };

BlockRows block_rows(int most, const Dim *m, int ways) {
  int64_t upper = dim_upper(m);
  BlockRows rows = {.least = 1, .most = (int)min_int(most, upper > 0 ? upper : 1)};
  if (!dim_is_const(m) || upper <= 0) return rows;
  int64_t blocks = ceil_div(upper, rows.most);
  blocks = min_int(upper, round_up(blocks, ways));
  return (BlockRows){.least = (int)(upper / blocks), .most = (int)ceil_div(upper, blocks)};
}

BlockRows block_rows_in_tiles(Graph *graph, int most, const Dim *m, int ways) {
  if (dim_equals(m, 1)) return (BlockRows){1, 1};
  BlockRows pairs = block_rows(most / 2, dim_ceil_div(graph->dims, m, dim_const(graph->dims, 2)), ways);
  bool even = dim_is_const(m) && dim_value(m) % 2 == 0;
  return (BlockRows){.least = 2 * pairs.least - !even, .most = 2 * pairs.most};
}

/* One row reads each panel once. From memory one panel at a time is fastest, with all sums in it; several at once are
 * faster for panels that caches keep from run to run, and for short ones. */
static bool comes_from_memory(const Graph *graph, int64_t n, int64_t k) {
  return 4 * n * k > graph->config->machine->l3_bytes / 4;
}

/* Vectors of such a panel. Workers get whole panels, so it is narrower where the widest would load one of them more
 * than the others, but rarely so narrow that its sums wait for each other. */
enum { MIN_ROW_VECTORS = 4, MAX_ROW_VECTORS_FEW = 13 };
static int most_row_vectors(const Target *target) {
  if (!target_has_few_registers(target)) return ROW_SUMS_MANY;
  return target->sums > ROW_SUMS_FEW ? MAX_ROW_VECTORS_FEW : ROW_SUMS_FEW;
}

static int row_vectors(const Graph *graph, int64_t n) {
  const Target *target = graph->config->target;
  int64_t used = ceil_div(n, target->lanes), workers = graph->config->machine->cores, share = INT64_MAX;
  int most = most_row_vectors(target), best = most;
  for (int vectors = most; vectors >= MIN_ROW_VECTORS; vectors--) {
    int64_t own = ceil_div(ceil_div(used, vectors), workers) * vectors;
    if (vectors < target->sums) own += own / 8;
    if (own < share) share = own, best = vectors;
  }
  return best;
}

int gemm_panel_vectors(const Target *target, int64_t n) {
  return panels_best_vectors(n, target->lanes, target_has_few_registers(target) ? 2 : 4);
}

GemmKnobs gemm_knobs(const Graph *graph, int64_t n, int64_t k, const Dim *m) {
  const Target *target = graph->config->target;
  bool one_row = dim_equals(m, 1);
  if (one_row && n >= ROW_SUMS_MANY * target->lanes && comes_from_memory(graph, n, k))
    return (GemmKnobs){.rows = {1, 1}, .vectors = row_vectors(graph, n), .group = 1, .depth_block = MAX_DEPTH};
  GemmKnobs knobs = {.vectors = gemm_panel_vectors(target, n)};
  knobs.rows = block_rows(register_rows(target, knobs.vectors), m, 1);
  int64_t panels = (n + knobs.vectors * target->lanes - 1) / (knobs.vectors * target->lanes);
  int most_sums = target_has_few_registers(target) ? ROW_SUMS_FEW : ROW_SUMS_MANY;
  knobs.group = 1;
  while (2 * knobs.group * knobs.vectors <= most_sums && 2 * knobs.group <= panels && knobs.group < 8) knobs.group *= 2;
  knobs.depth_block = target->l2_bytes / 2 / (4 * knobs.vectors * target->lanes);
  return knobs;
}

GemmKnobs gemm_knobs_in_matrices(Graph *graph, int vectors, const Dim *m, int row_parts) {
  const Target *target = graph->config->target;
  int tile_rows = MATRIX_ROWS / row_parts, tiles = dim_upper(m) > tile_rows ? 2 : 1; /* that share a panel's vectors */
  GemmKnobs knobs = {.vectors = (int)min_int(vectors, MATRIX_SUMS / tiles), .group = 1, .row_parts = row_parts};
  knobs.rows = block_rows(tile_rows, m, 1);
  int64_t row = 2 * (int64_t)knobs.vectors * target->lanes; /* bytes */
  knobs.depth_block = round_up(target->l2_bytes / 4 / row, BF16_DEPTH);
  return knobs;
}

const Dim *rounded_bytes(Graph *graph, const Dim *m, const Dim *k, int row_parts) {
  DimTable *dims = graph->dims;
  const Dim *tiles = dim_ceil_div(dims, m, dim_const(dims, MATRIX_ROWS / row_parts));
  const Dim *matrices = dim_mul(dims, tiles, dim_ceil_div(dims, k, dim_const(dims, BF16_DEPTH)));
  return dim_mul(dims, matrices, dim_const(dims, 2 * MATRIX_ROWS * BF16_DEPTH));
}

KernelSpec *gemm_bf16_spec(Arena *arena, const GemmKnobs *knobs) {
  KernelSpec *spec = kernel_spec_new(arena, "gemm_bf16");
  kernel_knob(spec, "VECTORS", knobs->vectors);
  kernel_knob(spec, "DEPTH_BLOCK", knobs->depth_block);
  kernel_knob(spec, "ROW_PARTS", knobs->row_parts);
  return spec;
}

void gemm_dump(Text *out, const GemmKnobs *knobs) {
  text_add(out, "  product rows=%d..%d,vectors=%d,group=%d,depth_block=%lld\n", knobs->rows.least, knobs->rows.most,
           knobs->vectors, knobs->group, (long long)knobs->depth_block);
}

KernelSpec *gemm_spec(Arena *arena, const GemmKnobs *knobs) {
  KernelSpec *spec = kernel_spec_new(arena, "gemm_packed");
  kernel_knob(spec, "VECTORS", knobs->vectors);
  kernel_knob(spec, "ROWS", knobs->rows.most);
  kernel_knob(spec, "MIN_ROWS", knobs->rows.least);
  kernel_knob(spec, "GROUP", knobs->group);
  kernel_knob(spec, "DEPTH_BLOCK", knobs->depth_block);
  return spec;
}

Value *packed_constant(Graph *graph, const char *name, const Panels *panels, const float *source, const float *addend) {
  int64_t floats = panels_floats(panels);
  float *data = ARENA_ARRAY(graph->arena, float, floats ? floats : 1);
  panels_pack(panels, source, addend, data);
  return graph_constant(graph, name, RNNCC_F32, 1, &floats, data);
}

Call *lower_packing(Program *program, const Node *node, const Panels *panels, bool adds) {
  KernelSpec *spec = kernel_spec(program, "pack_panels");
  kernel_knob(spec, "VECTORS", panels->vectors);
  kernel_knob(spec, "GATES", panels->gates);
  kernel_knob(spec, "UNIT_VECTORS", panels->unit_vectors);
  kernel_knob(spec, "ADDEND_GATES", adds ? panels->addend_gates : 0);
  Call *call = kernel_call(program, node, spec);
  operand_integer(call, "directions", panels->directions);
  operand_integer(call, "direction_stride", panels->direction_stride);
  return call;
}
