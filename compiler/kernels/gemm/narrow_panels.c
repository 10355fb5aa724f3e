/* SPDX-License-Identifier: MIT */
#include "kernels/gemm/narrow_panels.h"

#include "ir/narrow.h"
#include "ir/tensor.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"
#include "template/specialise.h"

/* Of templates/panel_narrow.h: WEIGHTS_..., and the steps of the depth that share a word. */
typedef struct Stored {
  DType dtype;
  bool rounds_rows;
  int knob, steps; /* 0: as the target multiplies them */
} Stored;
static const Stored stored[] = {{RNNCC_BF16, false, 1, 2},
                                {RNNCC_F16, false, 2, 1},
                                {RNNCC_I8, false, 3, 1},
                                {RNNCC_I4, false, 4, 8},
                                {RNNCC_BF16, true, 5, 0}};

static const Stored *stored_as(const NarrowWeights *narrow) {
  const Stored *found = stored;
  while (found->dtype != narrow->dtype || found->rounds_rows != narrow->rounds_rows) found++;
  return found;
}

/* A slice begins with a word, of whichever type. */
enum { SLICE_STEPS = 8 };

void weights_knobs(KernelSpec *spec, const NarrowWeights *narrow) {
  kernel_knob(spec, "WEIGHTS", narrow ? stored_as(narrow)->knob : 0);
  kernel_knob(spec, "SCALE_GROUP", narrow ? narrow->group : 0);
}

bool weights_alike(const NarrowWeights *a, const NarrowWeights *b) {
  return a && b ? stored_as(a) == stored_as(b) && a->group == b->group : a == b;
}

double weights_size(const NarrowWeights *narrow) {
  if (!narrow) return sizeof(float);
  double scale = narrow->group ? (double)sizeof(float) / (double)narrow->group : 0;
  return dtype_info(narrow->dtype)->bits / 8.0 + scale;
}

int64_t weights_slice(const NarrowWeights *narrow) {
  return narrow && narrow->group > SLICE_STEPS ? narrow->group : SLICE_STEPS;
}

static bool rounds_rows(const NarrowWeights *narrow) { return narrow && narrow->rounds_rows; }

bool weights_in_tiles(const Target *target, const NarrowWeights *narrow) {
  return rounds_rows(narrow) && !target->has_matrices;
}

/* Of fewer floats, which become three numbers each, products of f32 take no longer: measured on Emerald Rapids. */
enum { LEAST_ROWS_IN_PARTS = 2, LEAST_DEPTH_IN_PARTS = 96 };

bool weights_in_matrices(const Target *target, const NarrowWeights *narrow, int64_t rows, int64_t depth) {
  if (!target->has_matrices || !narrow || narrow->dtype != RNNCC_BF16) return false;
  return narrow->rounds_rows || (rows >= LEAST_ROWS_IN_PARTS && depth >= LEAST_DEPTH_IN_PARTS);
}

int weights_row_parts(const NarrowWeights *narrow) {
  enum { ROUNDED = 1, EXACT = 3 };
  return narrow->rounds_rows ? ROUNDED : EXACT;
}

void weights_products(Call *call, const NarrowWeights *narrow, bool in_matrices) {
  call_products(call, in_matrices || rounds_rows(narrow) ? RNNCC_BF16 : RNNCC_F32);
  if (in_matrices) call_in_parts(call, weights_row_parts(narrow));
}

/* Of one row a tile of two has twice as many sums as it needs. */
enum { MOST_VECTORS_OF_TWO_ROWS = 8 };

int bf16_register_rows(const Target *target, int vectors) {
  return target->bf16_rows == 2 ? register_rows_in_tiles(target, vectors) : register_rows(target, vectors);
}

BlockRows bf16_block_rows(Graph *graph, int vectors, const Dim *m, int ways) {
  const Target *target = graph->config->target;
  int most = bf16_register_rows(target, vectors);
  return target->bf16_rows == 2 ? block_rows_in_tiles(graph, most, m, ways) : block_rows(most, m, ways);
}

GemmKnobs narrow_gemm_knobs(Graph *graph, GemmKnobs knobs, const Dim *m, const NarrowWeights *narrow) {
  int64_t slice = weights_slice(narrow);
  if (narrow) knobs.depth_block = knobs.depth_block > slice ? knobs.depth_block / slice * slice : slice;
  if (!weights_in_tiles(graph->config->target, narrow)) return knobs;
  if (graph->config->target->bf16_rows == 2) knobs.vectors = (int)min_int(knobs.vectors, MOST_VECTORS_OF_TWO_ROWS);
  knobs.rows = bf16_block_rows(graph, knobs.vectors, m, 1);
  return knobs;
}

/* ---- packing ---- */

typedef struct Places {
  int64_t width, steps, depth; /* columns of a panel; of a word; rounded up to whole words */
} Places;

static int64_t steps_of_word(const Target *target, const Panels *panels, const NarrowWeights *narrow) {
  if (panels->in_matrices) return BF16_WORD;
  return weights_in_tiles(target, narrow) ? target->bf16_depth : stored_as(narrow)->steps;
}

static Places places_of(const Target *target, const Panels *panels, const NarrowWeights *narrow) {
  Places places = {.width = (int64_t)panels->vectors * panels->lanes, .steps = steps_of_word(target, panels, narrow)};
  places.depth = round_up(panels->depth, panels->in_matrices ? BF16_DEPTH : places.steps);
  return places;
}

static int64_t place_of(const Places *p, int64_t column, int64_t k) {
  int64_t panel = column / p->width * p->width * p->depth;
  return panel + (k / p->steps * p->width + column % p->width) * p->steps + k % p->steps;
}

static void set_number(Tensor *tensor, DType dtype, int64_t at, const Value *source, int64_t from) {
  if (!narrow_is_scaled(source->narrow)) {
    tensor_set(tensor, at, (double)((const float *)source->data)[from]);
    return;
  }
  int number = narrow_integer(source, from);
  uint8_t *bytes = tensor->data;
  if (dtype == RNNCC_I4)
    bytes[at / 2] |= (uint8_t)((number & 15) << at % 2 * 4);
  else
    bytes[at] = (uint8_t)number;
}

/* Two of i4 are in a byte. */
static Value *packed_numbers(Graph *graph, const char *name, const Panels *panels, const Value *source, int64_t first) {
  DType dtype = source->narrow->dtype;
  Places places = places_of(graph->config->target, panels, source->narrow);
  int64_t count = panels_columns(panels) * places.depth;
  if (dtype == RNNCC_I4) count /= 2;
  Tensor *tensor = tensor_new(graph->arena, dtype == RNNCC_I4 ? RNNCC_U8 : dtype, 1, &count);
  for (int64_t column = 0; column < panels_columns(panels); column++) {
    int64_t from = panels_source(panels, column);
    for (int64_t k = 0; from >= 0 && k < panels->depth; k++)
      set_number(tensor, dtype, place_of(&places, column, k), source, first + from + k * panels->depth_stride);
  }
  Value *packed = graph_constant(graph, name, tensor->dtype, 1, &count, tensor->data);
  packed->narrow = source->narrow;
  return packed;
}

/* [panel][group][columns of a panel]; those of padding are 0. */
static Value *packed_scales(Graph *graph, const char *name, const Panels *panels, const Value *source, int64_t first) {
  const NarrowWeights *narrow = source->narrow;
  int64_t width = (int64_t)panels->vectors * panels->lanes, group = narrow->group ? narrow->group : panels->depth;
  int64_t groups = narrow->group ? ceil_div(panels->depth, group) : 1, count = panels_columns(panels) * groups;
  float *scales = ARENA_ARRAY(graph->arena, float, count ? count : 1);
  for (int64_t i = 0; i < count; i++) {
    int64_t column = i / (width * groups) * width + i % width, from = panels_source(panels, column);
    int64_t k = i / width % groups * group;
    if (from >= 0 && panels->depth) scales[i] = narrow_scale(narrow, first + from + k * panels->depth_stride);
  }
  return graph_constant(graph, arena_format(graph->arena, "scales of %s", name), RNNCC_F32, 1, &count, scales);
}

NarrowPanels packed_narrow(Graph *graph, const char *name, const Panels *panels, const Value *source, int64_t first) {
  return (NarrowPanels){.packed = packed_numbers(graph, name, panels, source, first),
                        .scales = narrow_is_scaled(source->narrow) ? packed_scales(graph, name, panels, source, first)
                                                                   : NULL};
}
