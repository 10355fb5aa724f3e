/* SPDX-License-Identifier: MIT */
/* MaxPool, AveragePool and LpPool over one to three spatial axes; one axis is a plane of one row. */
#include "ir/family.h"
#include "kernels/pool/pool.h"
#include "knobs.h"
#include "layout/blocked.h"
#include "layout/row_tiles.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/numbers.h"

static int pool_kind(const Node *node) {
  if (is_op(node, OP_MaxPool)) return POOL_MAX;
  if (is_op(node, OP_LpPool)) return POOL_NORM;
  return node_int(node, ATTR_count_include_pad) ? POOL_MEAN_WITH_PADDING : POOL_MEAN;
}

static bool wants_indices(const Node *node) { return node_output(node, 1); }

/* ---- blocked tensors ---- */

/* A window's columns are vectors in registers; some registers are needed for other values. */
enum { MAX_WINDOW_W = 32, OTHER_REGISTERS = 8, MAX_COLUMNS = 14 };

static RowTiles blocked_tiles(Graph *graph, const Node *node, const Window *window) {
  const ConvAxis w = convolution_axis(graph, node, window, 0);
  int64_t reach = (w.kernel - 1) * w.dilation + 1;
  int64_t most = (graph->config->target->vector_registers - OTHER_REGISTERS - reach) / w.stride + 1;
  if (most > MAX_COLUMNS) most = MAX_COLUMNS;
  if (!axis_is_known(&w)) return (RowTiles){.columns = (int)clamp_int(1, most, dim_upper(w.out)), .variants = 1};
  return row_tiles_of(dim_value(w.out), most, w.stride, reach, dim_value(w.in), dim_value(w.pad_begin));
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  if (wants_indices(node) || pool_kind(node) == POOL_NORM) return 0;
  Window window = pool_window(graph, node);
  int w = window.n_spatial - 1;
  if (!pool_planes_fit(graph, node, &window)) return 0;
  if (dtype_is_byte(node->inputs[0]->dtype)) return LAYOUT_SET_BLOCKED;
  if (window.kernel[w] > MAX_WINDOW_W || blocked_tiles(graph, node, &window).variants > ROW_TILE_VARIANTS) return 0;
  return LAYOUT_SET_BLOCKED | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE);
}

/* Only maxima: means of bytes are nodes of their own (family_mean_int8.c). */
static void lower_bytes(Program *program, Node *node) {
  Window window = pool_window(program->graph, node);
  ConvAxis axes[3];
  pool_axes(program->graph, node, &window, axes);
  KernelSpec *spec = pool_int8_spec(program, node, axes, POOL_MAX);
  Call *call = kernel_call(program, node, spec);
  call_pool_int8(program->graph, call, node, axes, NULL);
  pool_cost(call, node, &window);
}

static void lower_blocked(Program *program, Node *node) {
  Graph *graph = program->graph;
  Blocked x = blocked_of(graph, node->inputs[0]);
  Window window = pool_window(graph, node);
  ConvAxis axes[3];
  pool_axes(graph, node, &window, axes);
  KernelSpec *spec = kernel_spec(program, "pool_blocked");
  kernel_window(spec, 2, &axes[0], &axes[1], NULL);
  kernel_plane(spec, &axes[1], &axes[0]);
  kernel_knob(spec, "KIND", pool_kind(node));
  kernel_knob(spec, "VECTORS", x.block / graph->config->target->lanes);
  kernel_extent(spec, "PAD_BOTTOM", axes[1].pad_end);
  kernel_extent(spec, "PAD_RIGHT", axes[0].pad_end);
  kernel_knob(spec, "COLUMNS", blocked_tiles(graph, node, &window).columns);
  if (!axis_is_known(&axes[0])) kernel_knob(spec, "ANY_WIDTH", 1);
  Call *call = kernel_call(program, node, spec);
  call_blocked_pool(graph, call, node, axes);
  operand_plane_extent(call, "pad_bottom", axes[1].pad_end);
  operand_plane_extent(call, "pad_right", axes[0].pad_end);
  pool_cost(call, node, &window);
}

/* ---- row-major tensors ---- */

static bool plain_rows_first(const Node *node, const ConvAxis *w) {
  bool float_sums = node->inputs[0]->dtype == RNNCC_F32 && pool_kind(node) != POOL_NORM;
  return float_sums && pool_rows_first(w);
}

static void lower_plain(Program *program, Node *node) {
  Graph *graph = program->graph;
  Window window = pool_window(graph, node);
  ConvAxis axes[3];
  pool_axes(graph, node, &window, axes);
  bool indices = wants_indices(node);
  KernelSpec *spec = kernel_spec(program, indices ? "max_pool_indices" : "pool_plain");
  kernel_window(spec, 3, &axes[0], &axes[1], &axes[2]);
  kernel_type(spec, "T", node->inputs[0]->dtype);
  if (indices) {
    kernel_knob(spec, "COLUMN_MAJOR", node_int(node, ATTR_storage_order) != 0);
  } else {
    kernel_knob(spec, "KIND", pool_kind(node));
    kernel_knob(spec, "COLUMNS", plain_rows_first(node, &axes[0]) ? POOL_COLUMNS : 0);
    if (pool_kind(node) == POOL_NORM) kernel_knob(spec, "P", node_int(node, ATTR_p));
  }
  Call *call = kernel_call(program, node, spec);
  call_plain_pool(graph, call, node, axes);
  if (indices) {
    operand_value(call, "indices", node->outputs[1], WRITE);
    operand_dim(call, "front", axes[2].pad_begin);
    operand_dim(call, "top", axes[1].pad_begin);
    operand_dim(call, "left", axes[0].pad_begin);
  } else {
    operand_pads(call, axes);
  }
  pool_cost(call, node, &window);
}

static void pool_lower(Program *program, Node *node) {
  if (is_blocked(node) && dtype_is_byte(node->inputs[0]->dtype))
    lower_bytes(program, node);
  else if (is_blocked(node))
    lower_blocked(program, node);
  else
    lower_plain(program, node);
}

const KernelFamily family_pool = {
    .layouts = layouts, .takes_constant_data = true, .runs_bytes = true, .runs_any_plane = true, .lower = pool_lower};
