/* SPDX-License-Identifier: MIT */
/*
 * The time of a plan is that of the products, limited by multiply-adds or reads, and of the transforms. Each weight is
 * read from memory once a run, because a network's weights evict each other between runs.
 *
 * Constants are fitted to single layers on a two-core AVX-512 machine with one multiply-add a cycle.
 */
#include "kernels/conv/winograd_plan.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/conv/cost.h"
#include "machine/targets.h"
#include "support/numbers.h"

static const double EFFICIENCY = 0.93;  /* of products in registers, relative to the count of their instructions */
static const double CYCLES_A_SUM = 1.4; /* of a part: to start, and to store it */
static const double UNHIDDEN = 0.15;    /* part of the shorter of computing and reading */
static const double USABLE = 0.7;       /* share of a cache that data may fill and stay */
static const double SPILLED = 1.2; /* so many more loads by llvm-mca, where a part of many tiles fills 16 registers */
static const double PAIR_CYCLES = 1.3;            /* of integers: of a product and an addition, of a multiply-add's */
static const double WEIGHT_CYCLES = 1.7;          /* of integers: to transform a vector at one point */
static const double FILTER_CYCLES = 0.8;          /* of weights that each run transforms: a filter at one point */
enum { MAX_PART_TILES = 14, MAX_OC_VECTORS = 4 }; /* of the template */
enum { LINE_FLOATS = 16 };

/* ---- which layers ---- */

static bool fits_pad(const Dim *pad, int64_t kernel) {
  return dim_is_const(pad) && dim_value(pad) >= 0 && dim_value(pad) < kernel;
}

bool winograd_fits_axis(const ConvAxis *axis) {
  return axis->stride == 1 && axis->dilation == 1 && fits_pad(axis->pad_begin, axis->kernel) &&
         fits_pad(axis->pad_end, axis->kernel);
}

const char *winograd_text(Arena *arena, const char *kind, const Convolution *conv, const WinogradPlan *p) {
  Text text = text_new(arena);
  text_add(&text, "%s%dx%d_%lldx%lld_oc%dt%db%lld%s_c%lldo%lld_", kind, p->form.tile_h, p->form.tile_w,
           (long long)conv->h.kernel, (long long)conv->w.kernel, p->oc_vectors, p->part_tiles,
           (long long)p->block_tiles, p->by_groups ? "_groups" : "", (long long)conv->channels,
           (long long)conv->kernels);
  plane_text(&text, conv->h.out, conv->w.out);
  return text.data;
}

/* ---- extents ---- */

static int64_t points_of(const WinogradPlan *p) { return winograd_points(&p->form); }
static int64_t tiles_of(const WinogradPlan *p, const WinogradLayer *l) {
  return l->images * ceil_div(l->out_h, p->form.tile_h) * ceil_div(l->out_w, p->form.tile_w);
}

/* With an even number of lines between points, few sets of the caches would be used. */
static int64_t odd_lines(int64_t floats) { return (ceil_div(floats, LINE_FLOATS) | 1) * LINE_FLOATS; }

int64_t winograd_input_point(const WinogradPlan *p, const WinogradLayer *l, int lanes) {
  return odd_lines(p->block_tiles * ceil_div(l->channels, lanes) * lanes);
}
int64_t winograd_product_point(const WinogradPlan *p, int lanes) { return odd_lines(p->block_tiles * lanes); }

int64_t winograd_slot(const WinogradPlan *p, const WinogradLayer *l, int lanes) {
  int64_t products = p->oc_vectors * winograd_product_point(p, lanes);
  int64_t numbers = points_of(p) * (winograd_input_point(p, l, lanes) + products);
  return numbers + (l->integer ? (p->form.tile_w + p->form.taps_w - 1) * l->channels * p->oc_vectors * lanes : 0);
}

/* ---- blocks and parts ---- */

/* n tiles in blocks of at most `block`, balanced: the two sizes, and the number of blocks. */
typedef struct Cut {
  int64_t blocks, small, large;
} Cut;

static Cut cut(int64_t n, int64_t block) {
  Cut c = {.blocks = ceil_div(n, block)};
  c.small = n / c.blocks;
  c.large = ceil_div(n, c.blocks);
  return c;
}

/* Beside the sums: the weights, and an element. Where elements are lanes, clang loads them two at a time; where a
 * result takes the place of an operand, sums change registers between channels. Less than 1 if so many vectors do not
 * fit. */
static int part_limit(const Target *target, int oc_vectors) {
  int elements = target->lane_operands ? 3 : target->two_operands ? 4 : 1;
  int tiles = (target->vector_registers - target->kept_registers - elements - oc_vectors) / oc_vectors;
  return tiles < MAX_PART_TILES ? tiles : MAX_PART_TILES;
}

/* If the number of tiles is a dim, every block and part may be the last. */
static void set_parts(WinogradPlan *p, const WinogradLayer *l, int limit) {
  Cut blocks = cut(tiles_of(p, l), p->block_tiles);
  Cut small = cut(blocks.small, limit), large = cut(blocks.large, limit);
  p->part_tiles = (int)(small.large > large.large ? small.large : large.large);
  p->least_tiles = (int)min_int(small.small, large.small);
  if (l->tiles_known) return;
  p->part_tiles = (int)min_int(limit, p->block_tiles);
  p->least_tiles = 1;
}

static int64_t groups_of(const WinogradPlan *p, const WinogradLayer *l, int lanes) {
  return ceil_div(l->kernels, (int64_t)p->oc_vectors * lanes);
}

/* If workers own blocks, there are enough for all. */
static void set_blocks(WinogradPlan *p, const WinogradLayer *l, int lanes, int64_t most_tiles, int cores) {
  int64_t tiles = tiles_of(p, l), blocks = ceil_div(tiles, most_tiles);
  if (!p->by_groups) blocks = ceil_div(blocks, cores) * cores;
  p->block_tiles = ceil_div(tiles, blocks);
  int64_t shares = p->by_groups ? groups_of(p, l, lanes) : ceil_div(tiles, p->block_tiles);
  p->slots = l->tiles_known || p->by_groups ? min_int(cores, shares) : cores;
}

/* ---- time ---- */

/* The work of the busiest worker. */
typedef struct Share {
  int64_t blocks, groups; /* groups of each of these blocks */
  int64_t channel_blocks; /* of its input */
  double tiles;           /* of a block, on average */
} Share;

static Share share_of(const WinogradPlan *p, const WinogradLayer *l, int lanes) {
  int64_t tiles = tiles_of(p, l), blocks = ceil_div(tiles, p->block_tiles), groups = groups_of(p, l, lanes);
  Share share = {.blocks = blocks, .groups = groups, .channel_blocks = ceil_div(l->channels, lanes)};
  if (p->by_groups)
    share.groups = ceil_div(groups, p->slots);
  else
    share.blocks = ceil_div(blocks, p->slots);
  share.tiles = (double)ceil_div(tiles * share.blocks, blocks) / (double)share.blocks;
  return share;
}

/* One channel of a part of m tiles. */
static double cycles_a_channel(const Target *target, const Machine *m, const WinogradPlan *p, const WinogradLayer *l,
                               double tiles) {
  double vectors = p->oc_vectors;
  double loads = cycles_to_read(m, vectors * 4 * target->lanes, m->l1_gbps) + tiles / m->loads_per_cycle;
  if (vectors == 1 && target->reads_ahead) loads *= SPILLED;
  double products =
      (l->integer && !target->has_pair_dot ? PAIR_CYCLES : 1) * tiles * vectors / fma_per_cycle(m, target->lanes);
  return max_double(max_double(products, loads), addition_cycles(target, m));
}

static double product_seconds(const Target *target, const Machine *m, const WinogradPlan *p, const WinogradLayer *l,
                              const Share *share) {
  double parts = ceil(share->tiles / p->part_tiles), tiles = share->tiles / parts;
  double cycles = (double)l->channels * cycles_a_channel(target, m, p, l, tiles) / EFFICIENCY;
  cycles += CYCLES_A_SUM * tiles * p->oc_vectors;
  return (double)(share->blocks * share->groups * points_of(p)) * parts * seconds_of_cycles(m, cycles);
}

/* Cycles to transform one vector at one point, in a network, where the input is further away than the products. 64
 * points are stored in memory between the two axes. */
typedef struct TransformCycles {
  double input, output;
} TransformCycles;

static TransformCycles transform_cycles(const WinogradLayer *l, int64_t points) {
  if (l->integer) return points == 1 ? (TransformCycles){3, 3.5} : (TransformCycles){5, 6};
  if (points > 36) return (TransformCycles){14, 12};
  return points > 16 ? (TransformCycles){8, 4} : (TransformCycles){6, 3.5};
}

static double transform_seconds(const Machine *m, const WinogradPlan *p, const WinogradLayer *l, const Share *share) {
  TransformCycles cycles = transform_cycles(l, points_of(p));
  double outputs = (double)(share->groups * p->oc_vectors);
  double a_tile = (double)share->channel_blocks * cycles.input + outputs * cycles.output;
  return seconds_of_cycles(m, (double)(share->blocks * points_of(p)) * share->tiles * a_tile);
}

/* Time to read bytes repeatedly, from the cache that holds them. */
static double again_seconds(const Machine *m, double bytes, double times) {
  if (bytes <= USABLE * (double)m->l2_bytes) return 0;
  return bytes * times / (1e9 * (bytes <= USABLE * (double)m->l3_bytes ? m->l3_gbps : m->dram_gbps));
}

/* Bytes of a column's weights in memory, in all channels. */
static double column_bytes(const WinogradPlan *p, const WinogradLayer *l) {
  if (l->integer) return 2.0 * (double)(l->taps_h * l->taps_w * l->channels);
  return 4.0 * (double)(points_of(p) * l->channels);
}

static double read_seconds(const Machine *m, const WinogradPlan *p, const WinogradLayer *l, int lanes,
                           const Share *share) {
  double weights = column_bytes(p, l) * (double)(share->groups * p->oc_vectors * lanes);
  double input = 4.0 * (double)(points_of(p) * winograd_input_point(p, l, lanes));
  double first = weights / (1e9 * m->dram_gbps * (p->by_groups || p->slots == 1 ? 1 : SAME_DATA));
  return first + again_seconds(m, weights, (double)(share->blocks - 1)) +
         again_seconds(m, input, (double)(share->blocks * share->groups));
}

/* Each part prefetches a line of the next weights for each channel, so few wide parts prefetch only some of them. */
static double unhidden(const WinogradPlan *p, int lanes) {
  double parts = (double)ceil_div(p->block_tiles, p->part_tiles);
  double fetched = min_double(1, parts * LINE_FLOATS / (double)(p->oc_vectors * lanes));
  return UNHIDDEN * (2 - fetched);
}

/* The weights as they are come from memory, and the points of all go to L3; each worker transforms a share. */
static double transform_weights_seconds(const Machine *m, const WinogradPlan *p, const WinogradLayer *l) {
  double filters = (double)(l->kernels * l->channels), shared = 1 / (double)m->cores;
  double cycles = filters * (double)points_of(p) * FILTER_CYCLES;
  double bytes = 4 * filters * (double)(l->taps_h * l->taps_w + points_of(p));
  return shared * (seconds_of_cycles(m, cycles) + bytes / (1e9 * m->l3_gbps));
}

/* Weights of integers are transformed for each block. */
static double weight_seconds(const Machine *m, const WinogradPlan *p, const WinogradLayer *l, const Share *share) {
  if (l->transforms_weights) return transform_weights_seconds(m, p, l);
  if (!l->integer) return 0;
  double vectors = (double)(share->blocks * share->groups * p->oc_vectors * l->channels);
  return seconds_of_cycles(m, vectors * (double)points_of(p) * WEIGHT_CYCLES);
}

static double plan_seconds(const Target *target, const Machine *m, const WinogradPlan *p, const WinogradLayer *l) {
  Share share = share_of(p, l, target->lanes);
  double products = product_seconds(target, m, p, l, &share);
  double reading = read_seconds(m, p, l, target->lanes, &share);
  double transforms = transform_seconds(m, p, l, &share) + weight_seconds(m, p, l, &share);
  return overlapped(products, reading, unhidden(p, target->lanes)) + transforms;
}

/* ---- choice ---- */

/* Forms with errors within 1e-4 of the largest result; errors grow with the number of points. */
static const WinogradForm forms[] = {
    {4, 4, 3, 3}, {6, 6, 3, 3}, {2, 2, 3, 3}, {1, 4, 1, 3}, {4, 1, 3, 1}, {1, 2, 1, 3}, {2, 1, 3, 1},
    {2, 2, 5, 5}, {1, 2, 1, 5}, {2, 1, 5, 1}, {1, 2, 1, 7}, {2, 1, 7, 1}, {1, 1, 1, 1}, /* of integers:
                                                                                           templates/conv_panel_int8.c
                                                                                         */
};
enum { FORMS = sizeof forms / sizeof *forms };

bool winograd_has_window(int64_t taps_h, int64_t taps_w) {
  for (int i = 0; i < FORMS; i++)
    if (forms[i].taps_h == taps_h && forms[i].taps_w == taps_w) return winograd_points(&forms[i]) > 1;
  return false;
}

/* Integers have transforms of three taps, and of tiles that their sums fit with. */
static bool is_form_of(const WinogradForm *f, const WinogradLayer *l) {
  if (f->taps_h != l->taps_h || f->taps_w != l->taps_w) return false;
  return !l->integer || (f->taps_h <= 3 && f->taps_w <= 3 && f->tile_h <= l->most_tile && f->tile_w <= l->most_tile);
}

static int tile_of(const WinogradForm *f) { return f->tile_h > f->tile_w ? f->tile_h : f->tile_w; }

/* The form of the layer's window with the nearest tile, of two the larger. */
static const WinogradForm *form_of(const WinogradLayer *l, int tile) {
  const WinogradForm *nearest = NULL;
  for (int i = 0; i < FORMS; i++) {
    if (!is_form_of(&forms[i], l)) continue;
    if (!nearest || abs(tile_of(&forms[i]) - tile) < abs(tile_of(nearest) - tile)) nearest = &forms[i];
  }
  return nearest;
}

static int most_parts(const WinogradLayer *l) { return l->integer ? MAX_INTEGER_PARTS : MAX_PARTS; }

void winograd_fit(const WinogradLayer *l, Knobs *knobs) {
  int *value = knobs->value;
  value[KNOB_winograd_tile] = tile_of(form_of(l, value[KNOB_winograd_tile]));
  value[KNOB_winograd_oc] = (int)clamp_int(1, value[KNOB_winograd_oc], MAX_OC_VECTORS);
  value[KNOB_winograd_parts] = (int)clamp_int(1, value[KNOB_winograd_parts], most_parts(l));
  value[KNOB_winograd_by_groups] = value[KNOB_winograd_by_groups] != 0;
}

WinogradPlan winograd_plan(const Target *target, const Machine *machine, const WinogradLayer *l, const Knobs *knobs) {
  WinogradPlan p = {.form = *form_of(l, knobs->value[KNOB_winograd_tile]),
                    .oc_vectors = knobs->value[KNOB_winograd_oc],
                    .parts = knobs->value[KNOB_winograd_parts],
                    .by_groups = knobs->value[KNOB_winograd_by_groups]};
  int limit = (int)max_int(1, part_limit(target, p.oc_vectors));
  set_blocks(&p, l, target->lanes, (int64_t)p.parts * limit, machine->cores);
  set_parts(&p, l, limit);
  p.seconds = plan_seconds(target, machine, &p, l);
  return p;
}

/* Do sums wait for each other? Or does clang spill some of a part of many tiles? */
static bool wastes_cycles(const Target *target, const WinogradPlan *p) {
  bool spills = p->oc_vectors == 1 && target->reads_ahead;
  return spills || p->least_tiles * p->oc_vectors < target->sums;
}

void winograd_list(const Target *target, const Machine *machine, const WinogradLayer *l, int64_t groups,
                   ConvCandidates *candidates) {
  static const int vectors[] = {2, 1, 3, 4}, parts[] = {2, 4, 1, 3, 6, 8, 12, MAX_INTEGER_PARTS};
  const int n_parts = l->integer ? 8 : MAX_PARTS;
  for (int i = 0; i < FORMS; i++) {
    if (!is_form_of(&forms[i], l)) continue;
    for (int k = 0; k < 2 * MAX_OC_VECTORS * n_parts; k++) {
      Knobs knobs = {{[KNOB_winograd_tile] = tile_of(&forms[i]),
                      [KNOB_winograd_oc] = vectors[k / n_parts % MAX_OC_VECTORS],
                      [KNOB_winograd_parts] = parts[k % n_parts],
                      [KNOB_winograd_by_groups] = k / n_parts / MAX_OC_VECTORS}};
      if (part_limit(target, knobs.value[KNOB_winograd_oc]) < 1) continue;
      WinogradPlan plan = winograd_plan(target, machine, l, &knobs);
      candidates_add(candidates, &knobs, (double)groups * plan.seconds,
                     plan.oc_vectors <= 2 && plan.parts % 2 == 0 && !wastes_cycles(target, &plan));
    }
  }
}
