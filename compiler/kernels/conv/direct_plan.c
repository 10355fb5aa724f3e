/* SPDX-License-Identifier: MIT */
#include "kernels/conv/direct_plan.h"

#include "kernels/conv/cost.h"
#include "machine/targets.h"
#include "support/numbers.h"

enum { MAX_OC_VECTORS = 8, MAX_COLUMNS = 28, MAX_UNROLL = 16 }; /* of the template */
enum { MIN_COLUMNS = 3 /* a third of what fits */ };
/* The constants are fitted to layers of ResNet-50, MobileNet-v2 and SqueezeNet in the run of the network, each with a
 * dozen schedules, on two cores with AVX-512 and one multiply-add a cycle. */

/* Overhead cycles of a run of tiles, of a tile, and to begin and end a vector of sums where a core has one pipe for
 * vectors: two do twice as much. A tile of few sums overlaps with the one before it. */
static const double run_cycles = 400, tile_cycles = 5, sum_cycles = 4, free_sums = 9;
/* The part of the cycles between two additions to a sum that other sums' multiply-adds do not hide, where these take as
 * long. Fitted to 1x1 layers on one core with two multiply-adds a cycle, tiles of 8 to 24 sums in vectors of 8 and 16:
 * 8 sums reach 83% of the peak, 12 reach 92%, 24 reach 99%. */
static const double exposed_latency = 0.2;
/* Loads of tiles of one vector, whose elements clang loads ahead beyond 16 registers: measured on Zen 5 with x86-64-v3,
 * of tiles of 10, 12 and 13 columns. */
static const double crowded_loads = 1.4;
/* The same to end vectors of sums that become bytes, with a residual and without: columns by four, which are packed
 * together, and others. Fitted to 1x1 layers of SSD-ResNet-50 on one core with AVX-512 and VNNI. */
static const double packed_cycles[] = {2.2, 4.9}, single_cycles[] = {3.5, 7};
/* To find the taps and the addresses of a tile of a phase. Fitted to layers of 2x2 windows and strides on Zen 3. */
static const double phase_cycles = 25;
/* For each further pass: to reload the sums from the output. */
static const double pass_cycles = 250;
/* Loop overhead of a tap of a block, relative to blocks of a vector, which the other constants include. Fitted to 1x1
 * layers on eight lanes, in blocks of 8 and of 16. */
static const double block_cycles = 2;
/* The part of reads from L1, L2 and beyond that multiply-adds do not hide: deep layers reach 97% of the peak. */
static const double exposed_l1 = 0.02, exposed_l2 = 0.05, exposed_l3 = 0.25;
/* The same of an input of several blocks from beyond L2, which is no stream, so that sums wait for it. Fitted to 1x1
 * layers of MobileNet-v2 and SqueezeNet on one core of Zen 3. */
static const double exposed_input = 0.8;
/* The share of L1 and L2 that data may fill and stay cached. */
static const double usable = 0.7;
/* Of an input that is swept, L2 keeps all if it fills so much of L2 with what comes between, and nothing from the
 * second number on: pages that fall into the same sets evict each other. */
static const double all_kept = 0.5, none_kept = 0.75;

int64_t direct_row_tiles(const DirectLayer *l, const DirectPlan *p) { return ceil_div(l->out_w, p->columns); }

/* Tiles at a place of the order, each of an output phase. */
static int64_t phases(const DirectLayer *l) { return max_int(1, l->up_h * l->up_w); }

/* Are an output channel's weights at most half of its output? */
static bool has_light_weights(const DirectLayer *l) {
  return 2 * l->depth * l->window_h * l->window_w <= l->images * phases(l) * l->out_h * l->out_w;
}

int64_t direct_tile_chunk(const Machine *machine, const DirectLayer *l, const DirectPlan *p) {
  int64_t tiles = l->out_h * direct_row_tiles(l, p);
  if (p->tile_chunk) return min_int(p->tile_chunk, tiles);
  return has_light_weights(l) && !l->prologue ? ceil_div(tiles, machine->cores) : tiles;
}

const Dim *direct_chunk_dim(const Graph *graph, const DirectLayer *l, const DirectPlan *p, const Dim *out_h,
                            const Dim *out_w) {
  DimTable *dims = graph->dims;
  int64_t chunk = direct_tile_chunk(graph->config->machine, l, p), all = l->out_h * direct_row_tiles(l, p);
  if ((dim_is_const(out_h) && dim_is_const(out_w)) || p->tile_chunk) return dim_const(dims, chunk);
  const Dim *columns = dim_const(dims, p->columns), *chunks = dim_const(dims, ceil_div(all, chunk));
  return dim_ceil_div(dims, dim_mul(dims, out_h, dim_ceil_div(dims, out_w, columns)), chunks);
}

/* A schedule in numbers. */
typedef struct Case {
  const Target *target;
  const Machine *machine;
  const DirectLayer *layer;
  const DirectPlan *plan;
  int64_t oc_groups, tiles, group_chunk, tile_chunk; /* all of the order; tiles of an image */
  double width;                                      /* mean columns of a tile */
} Case;

static Case case_of(const Target *target, const Machine *machine, const DirectLayer *l, const DirectPlan *p) {
  Case c = {.target = target, .machine = machine, .layer = l, .plan = p};
  c.oc_groups = ceil_div(l->oc_vectors, p->oc_vectors);
  c.tiles = l->out_h * direct_row_tiles(l, p);
  c.group_chunk = p->group_chunk && p->group_chunk < c.oc_groups ? p->group_chunk : c.oc_groups;
  c.tile_chunk = direct_tile_chunk(machine, l, p);
  c.width = (double)l->out_w / (double)direct_row_tiles(l, p);
  return c;
}

static double vector_bytes(const Case *c) { return 4.0 * c->target->lanes; }

/* Do the workers split the pixels, or the output channels? */
static bool splits_pixels(const Case *c) {
  return ceil_div(c->tiles, c->tile_chunk) * c->layer->images >= c->machine->cores;
}

/* Vectors of output channels of an oc group: what the last one lacks is spread over all workers or none. */
static double mean_vectors(const Case *c) {
  return splits_pixels(c) ? (double)c->layer->oc_vectors / (double)c->oc_groups : c->plan->oc_vectors;
}

static double group_weight_bytes(const Case *c) {
  const DirectLayer *l = c->layer;
  return (double)(l->depth * l->window_h * l->window_w) * mean_vectors(c) * vector_bytes(c);
}

/* The elements of an axis of `in` that `out` neighbouring windows read; strides wider than the window skip some. */
static double touched(int64_t out, int64_t stride, int64_t window, int64_t in) {
  return (double)min_int(in, min_int((out - 1) * stride + window, out * window));
}

/* The factor by which more is moved than read: strides may use only a part of each cache line. */
static double unread(const DirectLayer *l) {
  enum { LINE_FLOATS = 16 };
  double pixels = l->stride_w > l->window_w ? (double)LINE_FLOATS / (double)l->in_block : 1;
  return max_double(1, pixels < (double)l->stride_w ? pixels : (double)l->stride_w);
}

/* Bytes of input that `tiles` neighbouring tiles read. */
static double input_bytes(const Case *c, int64_t tiles) {
  const DirectLayer *l = c->layer;
  int64_t row_tiles = direct_row_tiles(l, c->plan), rows = ceil_div(tiles, row_tiles);
  int64_t columns = tiles < row_tiles ? (int64_t)(c->width * (double)tiles) : l->out_w;
  int64_t window_h = ceil_div(l->window_h, max_int(1, l->up_h)), window_w = ceil_div(l->window_w, max_int(1, l->up_w));
  return 4 * (double)l->depth * unread(l) * touched(rows, l->stride_h, window_h, l->in_h) *
         touched(columns, l->stride_w, window_w, l->in_w);
}

/* What a step's sums wait for those of the step before: the more of them there are, the less. The constants of bytes
 * include it. */
static double waiting_cycles(const Case *c, double multiply) {
  double latency = c->machine->fma_latency;
  return c->layer->of_bytes ? 0 : exposed_latency * latency * latency / max_double(multiply, latency);
}

/* Mean columns that tiles multiply, where they do two at once. */
static double paired_columns(const DirectLayer *l, const DirectPlan *p) {
  int64_t tiles = direct_row_tiles(l, p), wide = ceil_div(l->out_w, tiles), n_wide = l->out_w - tiles * (wide - 1);
  return (double)(n_wide * round_up(wide, 2) + (tiles - n_wide) * round_up(wide - 1, 2)) / (double)tiles;
}

/* A product by two is of twice as many bytes as one of a column, in a step of twice as many. What a pair of columns
 * takes besides: to bring its bytes together and to subtract from them. */
static double step_by_two(const Case *c, double vectors) {
  double columns = paired_columns(c->layer, c->plan), pair = c->layer->stride_w == 1 ? 2 : 4;
  TileCycles multiply = tile_step(c->machine, c->target->lanes, columns, vectors + pair / 2, 1);
  TileCycles load = tile_step(c->machine, c->target->lanes, columns * pair / 4, vectors, 1);
  double products = max_double(multiply.multiply, addition_cycles(c->target, c->machine)) / 2;
  return max_double(products, load.load) + exposed_l1 * load.load;
}

/* Of a step of a tile, or the loads that it needs. */
static double step_cycles(const Case *c, double vectors) {
  if (c->layer->by_two) return step_by_two(c, vectors);
  TileCycles tile = tile_step(c->machine, c->target->lanes, c->width, vectors, 1);
  double multiply = c->layer->step * max_double(tile.multiply, addition_cycles(c->target, c->machine));
  if (c->target->reads_ahead && !c->layer->of_bytes && vectors <= 1) tile.load *= crowded_loads;
  return max_double(multiply + waiting_cycles(c, multiply), tile.load) + exposed_l1 * tile.load;
}

/* The last oc group may have too few sums to hide their latency. */
static double mean_step_cycles(const Case *c) {
  int64_t last = c->layer->oc_vectors % c->plan->oc_vectors;
  double full = step_cycles(c, c->plan->oc_vectors);
  return last && splits_pixels(c) ? full + (step_cycles(c, (double)last) - full) / (double)c->oc_groups : full;
}

/* Multiply-adds of a tile, or the loads that they need. */
static double multiply_cycles(const Case *c) {
  const DirectLayer *l = c->layer;
  int64_t turns = l->by_two ? l->span / 2 : l->span;
  double starts = (double)turns - (double)l->depth / (double)l->lanes; /* more than of blocks of a vector */
  return l->taps * ((double)l->depth * mean_step_cycles(c) + starts * block_cycles);
}

/* To begin and end the sums of a tile in one pass. */
static double end_cycles(const Case *c) {
  const DirectLayer *l = c->layer;
  double vectors = mean_vectors(c), sums = vectors * c->width;
  if (!l->of_bytes) {
    double each = (l->residual ? 1.5 * sum_cycles : sum_cycles) / fma_per_cycle(c->machine, c->target->lanes);
    return tile_cycles + max_double(0, sums - free_sums) * each;
  }
  int64_t singles = ceil_div(l->out_w, direct_row_tiles(l, c->plan)) % 4;
  double packed = max_double(0, c->width - (double)singles);
  return tile_cycles + vectors * (packed * packed_cycles[l->residual] + (double)singles * single_cycles[l->residual]);
}

/* To begin and end the tiles of all phases at a place. */
static double ends_of_phases(const Case *c) {
  return (double)phases(c->layer) * (end_cycles(c) + (c->layer->up_w ? phase_cycles : 0));
}

/* Cycles of a tile with what it reads from L2; of the tiles of all phases, which take turns at the input. */
static double cycles_of_tile(const Case *c) {
  const DirectLayer *l = c->layer;
  int64_t passes = c->plan->pass ? ceil_div(l->span, c->plan->pass) : 1;
  double turns = (double)(passes * phases(l)), input = input_bytes(c, 1), l2 = (double)phases(l) * input;
  double weights = group_weight_bytes(c) / turns;
  if (weights + input / (double)passes > usable * (double)c->machine->l1_bytes) l2 += group_weight_bytes(c);
  double ends = (double)passes * ends_of_phases(c) + (double)(passes - 1) * pass_cycles;
  double multiply = multiply_cycles(c), read = cycles_to_read(c->machine, l2, c->machine->l2_gbps);
  return ends + overlapped(multiply, read, exposed_l2);
}

/* Where an item of the order is: its chunk of tiles, counted through all images. */
typedef struct ChunkPlace {
  int64_t first, tiles; /* of the chunk */
  int64_t begin;        /* its first item */
} ChunkPlace;

static ChunkPlace chunk_at(const Case *c, int64_t item) {
  int64_t image = item / (c->group_chunk * c->tiles), begin = image * c->group_chunk * c->tiles;
  int64_t skipped = (item - begin) / (c->group_chunk * c->tile_chunk) * c->tile_chunk;
  return (ChunkPlace){.first = image * c->tiles + skipped,
                      .tiles = min_int(c->tile_chunk, c->tiles - skipped),
                      .begin = begin + skipped * c->group_chunk};
}

/* Tiles whose input a worker reads that does items begin .. end: those of whole chunks, and of parts of two. */
static int64_t tiles_of_items(const Case *c, int64_t begin, int64_t end) {
  ChunkPlace first = chunk_at(c, begin), last = chunk_at(c, end - 1);
  if (first.begin == last.begin) return min_int(first.tiles, end - begin);
  int64_t between = last.first - first.first - first.tiles;
  int64_t of_first = min_int(first.tiles, first.begin + c->group_chunk * first.tiles - begin);
  return of_first + between + min_int(last.tiles, end - last.begin);
}

/* The most of the input that a worker reads: 1 if they split the output channels, one of their number if they split the
 * pixels, and between if they meet inside a chunk. */
static double part_read(const Case *c) {
  int64_t all = c->layer->images * c->tiles, items = all * c->oc_groups, cores = c->machine->cores, most = 1;
  for (int64_t i = 0; i < cores; i++) {
    int64_t begin = i * items / cores, end = (i + 1) * items / cores;
    if (begin < end) most = max_int(most, tiles_of_items(c, begin, end));
  }
  return most < all ? (double)most / (double)all : 1;
}

/* The part of a chunk's input that stays in L2 while all its oc groups read it, each with its weights and output. */
static double part_kept(const Case *c) {
  double output = (double)(c->tile_chunk * phases(c->layer)) * c->width * mean_vectors(c) * vector_bytes(c) *
                  (c->layer->residual ? 2 : 1);
  double bytes = input_bytes(c, c->tile_chunk) + group_weight_bytes(c) + output, l2 = (double)c->machine->l2_bytes;
  return max_double(0, min_double(1, (none_kept - bytes / l2) / (none_kept - all_kept)));
}

static double output_bytes(const Case *c) {
  const DirectLayer *l = c->layer;
  double bytes = (double)(l->images * phases(l) * l->out_h * l->out_w * l->oc_vectors) * vector_bytes(c);
  return l->of_bytes ? bytes / 4 : bytes;
}

/* Is the input read as a stream? If it has several blocks, a tile reads a few lines of each. */
static bool streams_input(const Case *c) { return c->layer->span == 1; }

/* Cycles for a worker to read its input from beyond L2: what it did not write itself is with others, and what L2 does
 * not keep comes again for each oc group. */
static double input_cycles(const Case *c) {
  const Machine *m = c->machine;
  double input = (double)c->layer->images * input_bytes(c, c->tiles), own = input / m->cores;
  double groups = (double)ceil_div(c->oc_groups, c->group_chunk), part = part_read(c), kept = part_kept(c);
  double sweeps = kept * max_double(part, groups / m->cores) + (1 - kept) * (double)c->oc_groups / m->cores;
  double from_others = max_double(0, part * input - own);
  double again = max_double(0, sweeps * input - own - from_others);
  double first = own * (1 - part_in_l2(m, own + output_bytes(c) / m->cores));
  return cycles_to_read(m, first + again, m->l3_gbps) +
         cycles_from_others(m, from_others, streams_input(c) ? STREAM_A_BARRIER : LINES_A_BARRIER);
}

/* Cycles for a worker to move weights and output from and to L3 and memory. */
static double moved_cycles(const Case *c) {
  const Machine *m = c->machine;
  const DirectLayer *l = c->layer;
  double chunks = (double)ceil_div(c->tiles, c->tile_chunk), chunk_input = input_bytes(c, c->tile_chunk);
  double room = usable * (double)m->l2_bytes, weights = group_weight_bytes(c) * (double)c->oc_groups;
  bool keeps_weights = group_weight_bytes(c) * (double)c->group_chunk + chunk_input <= room;
  double sweeps = keeps_weights ? 1 : chunks * (double)l->images; /* of the weights, by all workers together */
  double weight_reads = splits_pixels(c) ? weights * (keeps_weights ? m->cores : sweeps) : weights * sweeps;
  double output = output_bytes(c);
  double out = output * (l->residual ? 3 : 2) * (c->plan->pass && chunk_input > room ? 2 : 1);
  return cycles_to_read(m, (weight_reads + out) / m->cores, m->l3_gbps) +
         cycles_to_fetch(m, weights, !splits_pixels(c)) +
         cycles_to_retake(m, output / m->cores, l->oc_vectors * c->target->lanes, l->out_h * l->out_w);
}

static double seconds_of(const Case *c) {
  const Machine *m = c->machine;
  int64_t items = c->layer->images * c->oc_groups * c->tiles;
  double share = (double)ceil_div(items, m->cores), runs = share / (double)c->tile_chunk;
  double weights = cycles_to_read(m, group_weight_bytes(c), m->l2_gbps);
  double busy = share * cycles_of_tile(c) + runs * (run_cycles + weights);
  double fed = overlapped(busy, input_cycles(c), streams_input(c) ? exposed_l3 : exposed_input);
  return seconds_of_cycles(m, overlapped(fed, moved_cycles(c), exposed_l3));
}

double direct_seconds(const Target *target, const Machine *machine, const DirectLayer *l, DirectPlan *plan) {
  Case c = case_of(target, machine, l, plan);
  return plan->seconds = seconds_of(&c);
}

/* ---- candidates ---- */

typedef struct Search {
  const Target *target;
  const Machine *machine;
  const DirectLayer *layer;
  void (*visit)(void *argument, const DirectPlan *plan, bool usual);
  void *argument;
} Search;

/* Channels of a turn of the inner loop, the best first: the cost model ignores them. Of few sums, all channels of a
 * block, because of the loop's own instructions. Where a result takes the place of an operand, sums change registers
 * from one channel to the next, and clang runs out of them. So it does where it loads the bytes of two steps at once,
 * as it does those of floats that are lanes. */
enum { UNROLLS = 3 };
static const int *unrolls_of(const Search *s) {
  static const int few_sums[UNROLLS] = {DIRECT_LONG_TURN, 4, 2}, many_sums[UNROLLS] = {2, 1, 4},
                   short_turns[UNROLLS] = {1, 2, 4};
  const Target *target = s->target;
  if (target->two_operands || (target->lane_operands && s->layer->of_bytes)) return short_turns;
  return target_has_few_registers(target) && !s->layer->of_bytes ? few_sums : many_sums;
}

static void consider(const Search *s, DirectPlan plan, bool usual) {
  const int *unrolls = unrolls_of(s);
  direct_seconds(s->target, s->machine, s->layer, &plan);
  for (int i = 0; i < UNROLLS; i++) {
    plan.unroll = unrolls[i];
    s->visit(s->argument, &plan, usual);
  }
}

/* Orders: one chunk, so that each oc group's weights are read once; or chunks of tiles, each for all oc groups, or for
 * as many as keep their weights in L2. */
static void consider_orders(const Search *s, DirectPlan plan, bool usual) {
  Case c = case_of(s->target, s->machine, s->layer, &plan);
  int64_t kept = (int64_t)(usable / 2 * (double)s->machine->l2_bytes / group_weight_bytes(&c));
  consider(s, plan, usual);
  for (plan.tile_chunk = 4; plan.tile_chunk <= 64 && plan.tile_chunk < c.tiles; plan.tile_chunk *= 2) {
    plan.group_chunk = 0;
    consider(s, plan, usual);
    plan.group_chunk = kept > 0 ? kept : 1;
    if (plan.group_chunk < c.oc_groups) consider(s, plan, usual);
  }
}

/* Chunks of tiles whose panel, a part of L2, is read by all oc groups. */
static void consider_panels(const Search *s, DirectPlan plan, bool usual) {
  static const int parts_of_l2[] = {8, 4, 16};
  const DirectLayer *l = s->layer;
  int64_t tile_bytes = l->span * l->in_block * plan.columns * (int64_t)sizeof(float);
  for (size_t i = 0; i < sizeof parts_of_l2 / sizeof *parts_of_l2; i++) {
    plan.tile_chunk = s->machine->l2_bytes / parts_of_l2[i] / tile_bytes;
    if (plan.tile_chunk < 1) plan.tile_chunk = 1;
    consider(s, plan, usual && i == 0);
  }
}

/* One pass over all channels, or passes with partial sums in the output, so that weights stay in L1. */
static void consider_passes(const Search *s, DirectPlan plan, bool usual) {
  for (plan.pass = 0; plan.pass < s->layer->span; plan.pass = plan.pass ? 4 * plan.pass : 4)
    if (s->layer->prologue)
      consider_panels(s, plan, usual && plan.pass == 0);
    else
      consider_orders(s, plan, usual && plan.pass == 0);
}

/* Registers that clang does not use for sums, weights or an input, or it spills. Those that it keeps for sums that it
 * copies are too few for a single vector's. */
static int spare_registers(const Target *target, int oc_vectors) {
  if (target->kept_registers) return oc_vectors == 2 ? 1 : 2;
  if (!target->reads_ahead) return oc_vectors <= 2 ? 1 : 2;
  return oc_vectors == 3 ? 0 : oc_vectors == 2 ? 1 : 2;
}

/* Do elements of the input come as lanes of whole vectors? A block of fewer channels has none. */
static bool by_lanes(const Target *target, const DirectLayer *l) {
  return target->lane_operands && (l->of_bytes || l->in_block >= l->lanes);
}

/* The same of columns by two: beside each two columns' inputs, two weights and what is subtracted; with strides beside
 * the four loads that make an input. */
static int columns_by_two(const Target *target, const DirectLayer *l, int oc_vectors) {
  int registers = target->vector_registers - target->kept_registers;
  int pairs = l->stride_w == 1 ? (registers - 3) / (2 * oc_vectors + 1) : registers / (2 * oc_vectors + 4);
  return 2 * pairs > MAX_COLUMNS ? MAX_COLUMNS : 2 * pairs;
}

/* As many columns as fit in registers beside the weights and an input. Where elements are lanes: beside each column's
 * elements, and two weights. */
static int most_columns(const Target *target, const DirectLayer *l, int oc_vectors) {
  if (l->by_two) return columns_by_two(target, l, oc_vectors);
  int registers = target->vector_registers - target->kept_registers;
  int used = registers - spare_registers(target, oc_vectors);
  int columns = by_lanes(target, l) ? (registers - 2) / (oc_vectors + 1) : (used - 1 - oc_vectors) / oc_vectors;
  return columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
}

/* An oc group with parts of two groups of the convolution would multiply by zeros. */
static bool fits_groups(const DirectLayer *l, int oc_vectors) {
  return l->group_vectors == 0 || l->group_vectors % oc_vectors == 0;
}

/* The template cuts rows into tiles of nearly equal size, so only the number of tiles matters. */
static int even_columns(const DirectLayer *l, int most) { return (int)ceil_div(l->out_w, ceil_div(l->out_w, most)); }

void direct_each_plan(const Target *target, const Machine *machine, const DirectLayer *l,
                      void (*visit)(void *argument, const DirectPlan *plan, bool usual), void *argument) {
  Search search = {target, machine, l, visit, argument};
  for (int oc = 1; oc <= MAX_OC_VECTORS && oc <= l->oc_vectors; oc++) {
    int most = most_columns(target, l, oc), widest = most > 0 ? even_columns(l, most) : 0;
    if (most < 1 || !fits_groups(l, oc)) continue;
    for (int columns = widest; columns == widest || columns * MIN_COLUMNS >= most;
         columns = even_columns(l, columns - 1)) {
      consider_passes(&search, (DirectPlan){.oc_vectors = oc, .columns = columns}, columns == widest);
      if (columns == 1) break;
    }
  }
}

void direct_fit(const DirectLayer *l, DirectPlan *plan) {
  plan->oc_vectors = (int)clamp_int(1, plan->oc_vectors, min_int(l->oc_vectors, MAX_OC_VECTORS));
  plan->columns = (int)clamp_int(1, plan->columns, MAX_COLUMNS);
  plan->unroll = (int)clamp_int(1, plan->unroll, MAX_UNROLL);
}

void direct_plan_text(Text *text, const DirectPlan *plan) {
  text_add(text, "oc%dpx%du%d", plan->oc_vectors, plan->columns, plan->unroll);
  if (plan->pass) text_add(text, "_pass%lld", (long long)plan->pass);
  if (plan->group_chunk) text_add(text, "_groups%lld", (long long)plan->group_chunk);
  if (plan->tile_chunk) text_add(text, "_tiles%lld", (long long)plan->tile_chunk);
}
