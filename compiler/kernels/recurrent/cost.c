/* SPDX-License-Identifier: MIT */
/*
 * Products take the cycles of their register tiles by the machine's ports (machine/tile.h), or the time to read the
 * weights. The constants are fitted to the recurrent cases of tools/bench with vectors of 32 and of 64 bytes on two
 * cores of Zen 4, and to one layer on two cores of Granite Rapids (2 MB of L2): bandwidth by a worker's share of the
 * weights gives USABLE, products with and without blocked depth PREFETCHED. They are ratios, so they hold for machines
 * of other speeds.
 */
#include "kernels/recurrent/cost.h"

#include "kernels/gemm/narrow_panels.h"
#include "kernels/recurrent/bf16.h"
#include "kernels/recurrent/int8.h"
#include "kernels/recurrent/layer.h"
#include "machine/targets.h"
#include "machine/tile.h"
#include "support/numbers.h"
#include "tree.h"

static const double USABLE = 0.9;           /* share of a cache that weights may fill */
static const double STEP_EFFICIENCY = 0.95; /* relative to its tiles' cycles, of a step's product */
static const double EXPOSED_LOADS = 0.5;    /* part of a tile's loads that its multiply-adds do not hide */
static const double EXPOSED_L2 = 0.3;       /* part of the shorter of multiplying and reading from L2 */
static const double EXPOSED_L3 = 0.5;       /* the same beyond L2 */
static const double PREFETCHED = 0.8;       /* time of bytes from beyond L2 with blocked depth, which prefetches */
static const double MIN_WAIT = 0.1;         /* part of a barrier that work never hides */
static const double CYCLES_A_FUNCTION = 16; /* of one vector */
static const double CYCLES_A_PANEL = 30;    /* to start and to add up the sums of a block of rows */
static const double CYCLES_A_MATRIX = 9;    /* at least, of an instruction of AMX: of few rows on Emerald Rapids */
static const double CYCLES_A_MATRIX_ROW = 1;
static const double MORE_TO_MEET = 0.15; /* of a barrier, for each worker beyond two */

/* With at most so many steps, recurrent weights are read as seldom as the input's, and share the cache with them. */
enum { FEW_STEPS = 4 };

/* ---- the layer ---- */

static void settle_matrices(LayerCase *l, const Node *node, const Target *target) {
  if (!bf16_in_matrices(target, node)) return;
  l->matrices = bf16_product_in_matrices(target, node, INPUT_R);
  l->input_matrices = bf16_product_in_matrices(target, node, INPUT_W);
  if (l->matrices) {
    l->row_parts = weights_row_parts(node->inputs[INPUT_R]->narrow);
    l->rows = MATRIX_ROWS / l->row_parts;
    l->takes_hide = false;
  }
  if (l->input_matrices) {
    l->input_parts = weights_row_parts(node->inputs[INPUT_W]->narrow);
    l->input_rows = MATRIX_ROWS / l->input_parts;
  }
  l->takes_steps = l->takes_chunks = false;
}

static void settle_int8(LayerCase *l, const Node *node, const Target *target) {
  if (!int8_asked(node)) return;
  int64_t input_rows = saturating_mul(l->steps, l->batch);
  l->int8 = true;
  l->weight = 1;
  l->dot = int8_dot(target, node);
  l->tiles = target->has_tiles;
  l->matrices = int8_in_matrices(target, l->batch, l->hidden);
  l->input_matrices =
      product_in_matrices(target, input_rows, l->directions * l->gates * l->panels * l->panel_units, l->inputs);
  if (l->matrices)
    l->rows = MATRIX_ROWS;
  else if (int8_in_tiles(target, l->batch))
    l->rows = register_rows_in_tiles(target, l->vectors);
  if (l->input_matrices)
    l->input_rows = MATRIX_ROWS;
  else if (int8_in_tiles(target, input_rows))
    l->input_rows = register_rows_in_tiles(target, l->input_vectors);
  l->takes_hide = l->takes_steps = l->takes_chunks = false;
}

LayerCase layer_case(const MmLayer *layer, const Target *target) {
  const CellInfo *row = cell_info(layer->cell);
  int unit_vectors = layer_unit_vectors(layer->node, target, layer->steps, layer->batch, ALL_WORKERS);
  int vectors = row->product_gates * unit_vectors;
  vectors /= cell_panel_parts(target, vectors, dim_upper(layer->batch));
  bool forward = layer->directions == 1 && !layer->reverse;
  LayerCase result = {.directions = layer->directions,
                      .gates = layer->gates,
                      .lanes = target->lanes,
                      .rows = register_rows(target, vectors),
                      .vectors = vectors,
                      .parts = cell_partial_sums(target, vectors),
                      .phases = row->phases,
                      .functions = row->functions,
                      .row_parts = 1,
                      .input_parts = 1,
                      .from_zero = !node_input(layer->node, INPUT_H),
                      .takes_steps = !node_input(layer->node, INPUT_LENGTHS),
                      .takes_chunks = !layer->stacked && (forward || !node_input(layer->node, INPUT_LENGTHS)),
                      .most_steps = dim_upper(layer->steps),
                      .most_batch = dim_upper(layer->batch),
                      .steps = dim_optimum(layer->steps),
                      .batch = max_int(dim_optimum(layer->batch), 1), /* of no samples it does not run */
                      .inputs = layer->inputs,
                      .hidden = layer->hidden,
                      .panel_units = (int64_t)unit_vectors * target->lanes};
  result.panels = ceil_div(layer->hidden, result.panel_units);
  result.input_vectors = gemm_panel_vectors(target, layer->gates * result.panels * result.panel_units);
  result.input_rows = register_rows(target, result.input_vectors);
  result.takes_hide = row->phases == 1 && result.most_batch == 1 && result.steps > 1;
  const NarrowWeights *narrow = layer->node->inputs[INPUT_R]->narrow;
  result.weight = weights_size(narrow);
  if (!int8_asked(layer->node) && weights_in_tiles(target, narrow)) {
    result.bf16_rows = target->bf16_rows;
    result.bf16_depth = target->bf16_depth;
    result.rows = bf16_register_rows(target, vectors);
    result.input_rows = bf16_register_rows(target, result.input_vectors);
  }
  settle_matrices(&result, layer->node, target);
  settle_int8(&result, layer->node, target);
  return result;
}

int crew_size(const Machine *machine, const LayerCase *l) {
  return machine->cores >= l->directions ? machine->cores / l->directions : machine->cores;
}

MmExtents hidden_extents(const LayerCase *l, InputProduct input) {
  return (MmExtents){.i = l->batch,
                     .j = l->gates * l->panels * l->panel_units,
                     .k = l->hidden + (input == INPUT_WITH_STEP ? l->inputs : 0),
                     .steps = l->steps,
                     .most_i = l->batch,
                     .most_j = l->panels,
                     .bytes = l->int8};
}

/* ---- bytes ---- */

static double weight_size(const LayerCase *l) { return l->weight; }

/* The time to read bytes once: near is from L2, far from beyond, and the parts are those of all bytes. What is left
 * comes from L1, in a tile's own cycles. */
typedef struct ReadTime {
  double near, far, near_part, far_part;
} ReadTime;

/* The order of a worker's weights in each step. */
typedef enum Order {
  ORDER_FORWARD,     /* from the first to the last */
  ORDER_ALTERNATING, /* in alternating direction */
  ORDER_HALVES       /* alternating in one half of the depth, then in the other */
} Order;

/* The part of the working set found in an LRU cache of `bytes`. Alternating sweeps find what fits; with two halves, a
 * row is reused after half to all of the set; in forward sweeps always after all of it, so a perfect LRU cache would
 * find nothing: measured, everything if the set is half a cache, nothing if it is two. */
static double found(Order order, double working_set, double bytes) {
  double fits = USABLE * bytes / working_set;
  if (order == ORDER_ALTERNATING) return min_double(1, fits);
  if (order == ORDER_HALVES) return max_double(0, min_double(1, 2 * fits - 1));
  return max_double(0, min_double(1, 1 - (working_set - bytes / 2) / (1.5 * bytes)));
}

int64_t usable_l2(const Machine *m) { return (int64_t)(USABLE * (double)m->l2_bytes); }

double kept_in_l2(const Machine *m, double bytes) { return found(ORDER_ALTERNATING, bytes, (double)m->l2_bytes); }

double weight_bytes(const LayerCase *l) {
  return weight_size(l) * l->directions * l->gates * (double)(l->panels * l->panel_units) *
         (double)(l->inputs + l->hidden);
}

/* Time to read `bytes` of a worker's working set, which is swept repeatedly; `of_all` is that of all workers. */
static ReadTime read_time(const Machine *m, double bytes, double working_set, double of_all, Order order) {
  if (bytes <= 0) return (ReadTime){0};
  double in_l1 = found(order, working_set, (double)m->l1_bytes);
  double in_l2 = max_double(in_l1, found(order, working_set, (double)m->l2_bytes));
  double beyond_l3 = min_double(1 - in_l2, max_double(0, 1 - USABLE * (double)m->l3_bytes / of_all));
  return (ReadTime){
      .near = bytes * (in_l2 - in_l1) / m->l2_gbps,
      .far = bytes * ((1 - in_l2 - beyond_l3) / m->l3_gbps + beyond_l3 / m->dram_gbps),
      .near_part = in_l2 - in_l1,
      .far_part = 1 - in_l2,
  };
}

/* Bytes that are multiplied as they come. */
static double multiply_and_read(double multiply, const ReadTime *read) {
  return multiply * (1 - read->near_part - read->far_part) +
         overlapped(multiply * read->near_part, read->near, EXPOSED_L2) +
         overlapped(multiply * read->far_part, read->far, EXPOSED_L3);
}

/* ---- the parts ---- */

typedef struct Share { /* of the busiest worker */
  int workers, unit_ways;
  double samples, panels;       /* its own */
  double passes;                /* blocks of its samples */
  double input, hidden;         /* bytes of its W and R */
  double all_input, all_hidden; /* bytes of the whole layer's */
} Share;

/* Two workers share the middle one of an odd number of panels. */
static bool shares_middle(const LayerCase *l, const RecurrentVariant *v, int unit_ways) {
  return unit_ways == 2 && l->panels % 2 && l->panels >= 3 && !v->hide;
}

static Share share_of(const Machine *m, const LayerCase *l, const RecurrentVariant *v) {
  int workers = v->workers < crew_size(m, l) ? v->workers : crew_size(m, l);
  int ways = v->batch_parts < workers ? v->batch_parts : workers;
  if (ways > l->batch) ways = (int)l->batch;
  Share s = {.workers = workers, .unit_ways = workers / ways};
  int64_t samples = ceil_div(l->batch, ways), panels = ceil_div(l->panels, s.unit_ways);
  double column = weight_size(l) * l->gates * (double)l->panel_units; /* bytes of a panel's row */
  s.samples = (double)samples;
  s.panels = shares_middle(l, v, s.unit_ways) ? (double)l->panels / 2 : (double)panels;
  s.passes = (double)ceil_div(samples, l->rows);
  s.input = s.panels * column * (double)l->inputs;
  s.hidden = s.panels * column * (double)l->hidden;
  s.all_input = l->directions * (double)l->panels * column * (double)l->inputs;
  s.all_hidden = l->directions * (double)l->panels * column * (double)l->hidden;
  return s;
}

static double flat_meeting_ns(const Machine *m, int workers) {
  return m->barrier_ns * (1 + MORE_TO_MEET * (workers - 2));
}

/* On each level up, a parent and its children meet; on each level down, it tells them. Who has no work enters, too. */
static double tree_meeting_ns(const Machine *m) {
  double total = 0;
  for (int workers = m->cores; workers > 1; workers = (int)ceil_div(workers, TREE_FAN))
    total += flat_meeting_ns(m, workers < TREE_FAN ? workers : TREE_FAN) + m->barrier_ns;
  return total;
}

double meeting_ns(const Machine *m, int workers) {
  if (workers < 2) return 0;
  return is_tree(m->cores) ? tree_meeting_ns(m) : flat_meeting_ns(m, workers);
}

/* Instructions of a vector of weights, 4 bytes a lane whatever its elements are, with each of `samples` on average. In
 * tiles a pair of them has one, and the last of an odd number counts as a pair. Of bf16 a vector is one of f32, a step
 * of the depth: as many instructions as a tile has samples multiply it by bf16_depth of these. */
static double instructions(const LayerCase *l, double samples) {
  double of_tiles = l->bf16_rows ? (double)round_up((int64_t)samples, l->bf16_rows) : 0;
  if (l->bf16_rows) return of_tiles / samples / l->bf16_depth;
  if (l->tiles && samples > 1) return (double)ceil_div((int64_t)samples, 2) / samples;
  return l->int8 ? l->dot : 1;
}

/* The same by matrices, of 1 KB of weights each. */
static double matrices_ns(const Machine *m, double bytes, double rows, double passes) {
  double of_rows = rows / passes, cycles = max_double(CYCLES_A_MATRIX, of_rows * CYCLES_A_MATRIX_ROW);
  return passes * bytes / (MATRIX_BYTES * MATRIX_ROWS) * cycles / m->ghz;
}

/* Time to multiply `samples` in `passes` blocks of rows with `bytes` of weights, all in registers or L1. Of one row
 * each weight is loaded by the multiply-add that needs it, and all overlap. */
static double multiply_ns(const Machine *m, const LayerCase *l, double bytes, int vectors, double samples,
                          double passes) {
  TileCycles tile = tile_step(m, l->lanes, samples / passes, vectors, samples > passes ? 1 : l->parts);
  double bytes_a_step = (l->int8 ? 4.0 : l->weight) * l->lanes * vectors, steps = bytes / bytes_a_step * passes;
  double load = l->bf16_rows ? tile.load / 2 : tile.load, exposed = samples > passes ? EXPOSED_LOADS * load : 0;
  return steps * max_double(instructions(l, samples) * tile.multiply + exposed, load) / m->ghz;
}

/* The whole team computes the input's products of all steps, then a barrier. */
static double input_ns(const Machine *m, const LayerCase *l, const Share *s) {
  double rows = (double)l->steps * (double)l->batch, columns = s->all_input / (weight_size(l) * (double)l->inputs);
  double weights = s->all_input / m->cores, result = 4 * rows * columns / m->cores;
  double passes = (double)ceil_div(l->steps * l->batch, l->input_rows);
  double compute = l->input_matrices ? matrices_ns(m, weights, rows * l->input_parts, passes)
                                     : multiply_ns(m, l, weights, l->input_vectors, rows, passes);
  double others = l->steps < FEW_STEPS ? s->hidden : 0;
  ReadTime read = read_time(m, weights, weights + others, s->all_input + s->all_hidden, ORDER_FORWARD);
  double stored = result / (result > USABLE * (double)m->l2_bytes ? m->l3_gbps : m->l2_gbps);
  return multiply_and_read(compute, &read) + EXPOSED_L2 * stored + meeting_ns(m, m->cores);
}

/* Few samples of a worker are by dot products, of integers. */
static bool steps_in_matrices(const LayerCase *l, const Share *s) {
  return l->matrices && (!l->int8 || s->samples >= LEAST_MATRIX_ROWS);
}

/* One step's products. The first block of rows reads the weights from where they are; others read each panel again:
 * from L2, or from L1 if depth is blocked. After the first steps the input's weights are of no further use. */
static double products_ns(const Machine *m, const LayerCase *l, const RecurrentVariant *v, const Share *s) {
  bool with_step = v->input == INPUT_WITH_STEP;
  double bytes = s->hidden + (with_step ? s->input : 0);
  if (bytes <= 0) return 0;
  double working_set = with_step || l->steps >= FEW_STEPS ? bytes : s->hidden + s->input;
  double of_all = s->all_hidden + (with_step || l->steps < FEW_STEPS ? s->all_input : 0);
  ReadTime read = read_time(m, bytes, working_set, of_all, v->hide ? ORDER_HALVES : ORDER_ALTERNATING);
  double all = steps_in_matrices(l, s) ? matrices_ns(m, bytes, s->samples * l->row_parts, s->passes)
                                       : multiply_ns(m, l, bytes, l->vectors, s->samples, s->passes);
  all /= STEP_EFFICIENCY;
  if (v->depth_block) read.far *= PREFETCHED;
  double again = bytes / (v->depth_block ? m->l1_gbps : m->l2_gbps);
  double put_by = v->depth_block ? (bytes / 4 / (double)v->depth_block) * s->samples * 8 / m->l1_gbps : 0;
  return multiply_and_read(all / s->passes, &read) + (s->passes - 1) * max_double(all / s->passes, again) + put_by;
}

/* Halves and blocks of the depth start again. */
static double starts_ns(const Machine *m, const LayerCase *l, const RecurrentVariant *v, const Share *s) {
  double pieces = v->hide ? 2 : 1;
  if (v->depth_block) pieces = (double)ceil_div(l->hidden, v->depth_block);
  return l->phases * s->panels * s->passes * pieces * CYCLES_A_PANEL / m->ghz;
}

static double cells_ns(const Machine *m, const LayerCase *l, const Share *s) {
  double vectors = s->samples * s->panels * (double)l->panel_units / l->lanes;
  return vectors * l->functions * CYCLES_A_FUNCTION / m->ghz;
}

/* Workers of one sample have a barrier in every step, and read the others' parts of its hidden state. Each may multiply
 * its own part first, which hides the barrier behind half of its products. */
static double waits_ns(const Machine *m, const LayerCase *l, const RecurrentVariant *v, const Share *s,
                       double products) {
  if (s->unit_ways < 2) return 0;
  double others = 4 * s->samples * (double)l->hidden * (s->unit_ways - 1) / s->unit_ways;
  double wait = meeting_ns(m, s->workers) + others / m->l3_gbps;
  return l->phases * (v->hide ? max_double(MIN_WAIT * wait, wait - products / 2) : wait);
}

RecurrentCost recurrent_cost(const Machine *m, const LayerCase *l, const RecurrentVariant *v) {
  Share s = share_of(m, l, v), first = s;
  if (l->from_zero) first.hidden = 0;
  int turns = m->cores >= l->directions ? 1 : l->directions; /* directions that run one after the other */
  double products = products_ns(m, l, v, &s), starts = starts_ns(m, l, v, &s), steps = (double)l->steps;
  RecurrentCost cost = {.input = v->input == INPUT_AHEAD ? input_ns(m, l, &s) : 0,
                        .products = turns * ((steps - 1) * products + products_ns(m, l, v, &first) + steps * starts),
                        .cells = turns * steps * cells_ns(m, l, &s),
                        .waits = turns * steps * waits_ns(m, l, v, &s, products)};
  cost.total = cost.input + cost.products + cost.cells + cost.waits;
  return cost;
}
