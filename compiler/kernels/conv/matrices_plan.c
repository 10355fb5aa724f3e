/* SPDX-License-Identifier: MIT */
#include "kernels/conv/matrices_plan.h"

#include <math.h>

#include "kernels/conv/cost.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"
#include "template/specialise.h"

typedef MatricesLayer Layer;
typedef MatricesPlan Plan;

enum { LINE = MATRIX_LINE, VECTORS = MATRIX_VECTORS };
enum { LEAST_BLOCK = 2 * MATRIX_ROWS }; /* pixels: a pair */
enum { MAX_BLOCK = 1 << 16 };           /* pairs */
enum { MAX_STRIP_BYTES = 1 << 28 };     /* as offsets in it are constants of the template */

/* Places of the knobs of each algorithm. */
enum { PAIRS, BY_GROUPS };
_Static_assert((int)KNOB_matrices_int8_pairs == PAIRS && (int)KNOB_matrices_bf16_pairs == PAIRS &&
                   (int)KNOB_matrices_int8_by_groups == BY_GROUPS && (int)KNOB_matrices_bf16_by_groups == BY_GROUPS,
               "one order of knobs");

/* ---- which layers ---- */

/* The groups of a part: as many as fill blocks of channels of the input and of the output. */
static int64_t merged_groups(const Convolution *conv, int64_t lanes) {
  int64_t merged = 1;
  if (conv->groups > 1)
    while (merged * conv->channels % lanes || merged * conv->kernels % lanes) merged++;
  return merged;
}

bool matrices_run(const Graph *graph, const Convolution *conv) {
  const Target *target = graph->config->target;
  if (!target->has_matrices) return false;
  return conv->groups == 1 || (conv->channels > 1 && conv->groups % merged_groups(conv, target->lanes) == 0);
}

/* A layer whose strip is so, with the lines that a window then has. */
static Layer with_strip(const Layer *layer, int64_t fold, bool phases) {
  Layer l = *layer;
  l.fold = fold;
  l.phases = phases;
  bool apart = l.w.dilation > 1 || (phases && l.w.stride > 1);
  l.pieces = ceil_div(l.h.kernel, fold) * (apart ? l.w.kernel : 1);
  l.piece_lines = ceil_div((apart ? 1 : l.w.kernel) * fold * l.channels, LINE);
  l.lines = l.pieces * l.piece_lines;
  return l;
}

/* With few channels a row of a window leaves most of a line empty. */
static Layer choose_strip(const Layer *layer) {
  Layer best = with_strip(layer, 1, false);
  bool strides = best.h.stride > 1 || best.w.stride > 1, few = best.w.kernel * best.channels < LINE;
  Layer others[] = {with_strip(layer, 1, strides), best, best};
  if (few && best.h.dilation == 1) {
    others[1] = with_strip(layer, best.h.stride, false);
    others[2] = with_strip(layer, best.h.kernel, false);
  }
  if (others[0].lines == best.lines) best = others[0];
  for (int i = 1; i < 3; i++)
    if (others[i].lines < best.lines) best = others[i];
  return best;
}

static Layer layer_of(const Graph *graph, const Convolution *conv) {
  const Dim *images = conv->x->shape[0];
  int64_t lanes = graph->config->target->lanes, merged = merged_groups(conv, lanes);
  Layer l = {.images = max_int(1, dim_optimum(images)),
             .images_known = dim_is_const(images),
             .parts = conv->groups / merged,
             .merged = merged,
             .element = conv->integer ? 1 : (int64_t)sizeof(uint16_t),
             .blocks = ceil_div(merged * conv->channels, conv->x_block),
             .vectors = ceil_div(merged * conv->kernels, lanes),
             .residual = conv->residual != NULL};
  convolution_rows(graph->dims, conv, &l.h, &l.w);
  l.plane_known = axis_is_known(&l.h) && axis_is_known(&l.w);
  l.out_h = max_int(1, dim_optimum(l.h.out));
  l.out_w = max_int(1, dim_optimum(l.w.out));
  l.channels = l.blocks * conv->x_block * l.element;
  l.groups = ceil_div(l.vectors, VECTORS);
  return choose_strip(&l);
}

/* ---- blocks ---- */

/* In the strip: from a row or column of the output to the next one. */
static int64_t step_h(const Layer *l) { return l->fold > 1 || l->phases ? 1 : l->h.stride; }
static int64_t step_w(const Layer *l) { return l->phases ? 1 : l->w.stride; }

/* What a window reaches over behind its first row or column, without phases. */
static int64_t reach_h(const Layer *l) {
  return l->fold > 1 ? (l->h.kernel - 1) / l->fold * (l->fold / l->h.stride) : (l->h.kernel - 1) * l->h.dilation;
}
static int64_t reach_w(const Layer *l) { return (l->w.kernel - 1) * l->w.dilation; }

/* Columns of the strip of so many of the output. */
static int64_t strip_w(const Layer *l, int64_t columns) {
  return (columns - 1) * step_w(l) + reach_w(l) / (l->phases ? l->w.stride : 1) + 1;
}

/* Pixels of a block's strip. */
static int64_t strip_pixels(const Layer *l, const Plan *p) {
  int64_t rows = (p->block_h - 1) * step_h(l) + reach_h(l) / (l->phases ? l->h.stride : 1) + 1;
  int64_t phases = l->phases ? min_int(l->h.stride, reach_h(l) + 1) * min_int(l->w.stride, reach_w(l) + 1) : 1;
  return phases * rows * strip_w(l, p->block_w);
}

/* With what its last matrix reads behind it. */
static int64_t strip_bytes(const Layer *l, const Plan *p) {
  int64_t pixel = l->fold * l->channels, behind = MATRIX_ROWS * step_w(l) * pixel + LINE;
  return round_up(strip_pixels(l, p) * pixel + behind, LINE);
}

/* Matrices of a block, in each row or across them, whichever loads and multiplies fewer rows. */
static void choose_matrices(const Layer *l, Plan *p) {
  int64_t in_row = ceil_div(p->block_w, MATRIX_ROWS);
  p->rows = ceil_div(p->block_w, in_row);
  p->matrices = p->block_h * in_row;
  if (step_w(l) > 1 || step_h(l) > 1) return;
  int64_t pixels = (p->block_h - 1) * strip_w(l, p->block_w) + p->block_w;
  int64_t matrices = ceil_div(pixels, MATRIX_ROWS), rows = ceil_div(pixels, matrices);
  p->across = matrices * (MATRIX_ROWS + rows) < p->matrices * (MATRIX_ROWS + p->rows);
  if (!p->across) return;
  p->matrices = matrices;
  p->rows = rows;
}

/* Blocks of about so many pixels: rows, or parts of one. A multiple of `cores` of them if there are as many rows. */
static void divide(const Layer *l, int64_t pixels, int64_t cores, Plan *p) {
  int64_t in_row = ceil_div(l->out_w, pixels), images = l->images;
  if (l->out_h == 1) in_row = min_int(ceil_div(l->out_w, MATRIX_ROWS), round_up(in_row * images, cores) / images);
  p->block_w = ceil_div(l->out_w, in_row);
  int64_t blocks = ceil_div(l->out_h, in_row > 1 ? 1 : pixels / l->out_w);
  blocks = min_int(l->out_h, ceil_div(round_up(blocks * images, cores), images));
  p->block_h = ceil_div(l->out_h, blocks);
}

/* The same, or smaller ones, for a strip of MAX_STRIP_BYTES: is that possible? */
static bool choose_blocks(const Layer *l, int64_t pixels, int64_t cores, Plan *p) {
  divide(l, pixels, cores, p);
  while (strip_bytes(l, p) > MAX_STRIP_BYTES) {
    if (pixels == LEAST_BLOCK) return false;
    pixels = max_int(pixels / 2, LEAST_BLOCK);
    divide(l, pixels, cores, p);
  }
  return true;
}

bool matrices_suit(const Graph *graph, const Node *node, const Convolution *conv) {
  (void)node;
  if (conv->x_block > graph->config->target->lanes || dim_optimum(conv->x->shape[0]) <= 0) return false;
  Layer layer = layer_of(graph, conv);
  return choose_blocks(&layer, LEAST_BLOCK, 1, &(Plan){0});
}

static int64_t blocks_of(const Layer *l, const Plan *p) {
  return ceil_div(l->out_h, p->block_h) * ceil_div(l->out_w, p->block_w);
}

/* ---- time ---- */

/* Fitted to layers of five networks of bytes, in blocks of 1 to 256 pairs, on one core of Emerald Rapids at 2.9 GHz, in
 * cycles; those of floats to 16 layers of bf16. */
static const double CYCLES_A_LINE = 1.85;    /* of two matrices and their weights, which are loaded for each product */
static const double CYCLES_A_SUM = 35;       /* of a matrix: to start, and to store it */
static const double CYCLES_A_VECTOR = 2;     /* of results */
static const double CYCLES_A_FLOATS = 5;     /* the same, of bf16 */
static const double CYCLES_A_RESIDUAL = 2.5; /* more, with one */
static const double CYCLES_A_COPY = 2.2;     /* of a strip: a block of channels, or a part of a padded pixel */
static const double CYCLES_A_ROUNDED = 5;    /* the same, of floats that become bf16 */
static const double UNHIDDEN = 0.15;         /* part of the shorter of computing and reading */
static const double USABLE = 0.7;            /* share of a cache that data may fill and stay */

static bool in_bf16(const Layer *l) { return l->element > 1; }

/* The work of the busiest worker: so many vectors of each block of a part. */
typedef struct Share {
  double parts, blocks, vectors;
} Share;

static Share share_of(const Layer *l, const Plan *p) {
  int64_t blocks = l->images * blocks_of(l, p), groups = ceil_div(l->parts * l->groups, p->slots);
  if (p->by_groups)
    return (Share){(double)ceil_div(groups, l->groups), (double)blocks, (double)min_int(l->vectors, VECTORS * groups)};
  return (Share){(double)l->parts, (double)ceil_div(blocks, p->slots), (double)l->vectors};
}

static double product_cycles(const Layer *l, const Plan *p, const Share *s) {
  double rows = (double)(p->matrices * p->rows), pairs = (double)ceil_div(p->matrices, 2);
  double products =
      CYCLES_A_LINE * (double)l->lines * (ceil(s->vectors / VECTORS) * rows + s->vectors * MATRIX_ROWS * pairs);
  double vector = (in_bf16(l) ? CYCLES_A_FLOATS : CYCLES_A_VECTOR) + (l->residual ? CYCLES_A_RESIDUAL : 0);
  double vectors = s->vectors * rows * vector;
  return s->parts * s->blocks * (products + (double)p->matrices * s->vectors * CYCLES_A_SUM + vectors);
}

static double strip_cycles(const Layer *l, const Plan *p, const Share *s) {
  return (in_bf16(l) ? CYCLES_A_ROUNDED : CYCLES_A_COPY) * s->parts * s->blocks *
         (double)(strip_pixels(l, p) * l->fold * l->blocks);
}

/* Time to read bytes repeatedly, from the cache that holds them. */
static double again_seconds(const Machine *m, double bytes, double times) {
  if (bytes <= USABLE * (double)m->l2_bytes) return 0;
  return bytes * times / (1e9 * (bytes <= USABLE * (double)m->l3_bytes ? m->l3_gbps : m->dram_gbps));
}

static double read_seconds(const Machine *m, const Layer *l, const Plan *p, const Share *s) {
  double weights = s->vectors * (double)(l->lines * MATRIX);
  double first = weights / (1e9 * m->dram_gbps * (p->by_groups || p->slots == 1 ? 1 : SAME_DATA));
  double again = again_seconds(m, weights, s->blocks - 1) +
                 again_seconds(m, (double)strip_bytes(l, p), s->blocks * s->vectors / VECTORS);
  return s->parts * (first + again);
}

static double plan_seconds(const Machine *m, const Layer *l, const Plan *p) {
  Share share = share_of(l, p);
  double products = seconds_of_cycles(m, product_cycles(l, p, &share)), strips = strip_cycles(l, p, &share);
  return overlapped(products, read_seconds(m, l, p, &share), UNHIDDEN) + seconds_of_cycles(m, strips);
}

/* ---- choice ---- */

static Plan plan_of(const Machine *machine, const Layer *l, const Knobs *knobs) {
  Plan p = {.by_groups = knobs->value[BY_GROUPS]};
  int64_t pixels = LEAST_BLOCK * (int64_t)knobs->value[PAIRS];
  choose_blocks(l, pixels, p.by_groups ? 1 : machine->cores, &p);
  choose_matrices(l, &p);
  int64_t shares = p.by_groups ? l->parts * l->groups : l->images * blocks_of(l, &p);
  bool known = p.by_groups || (l->images_known && l->plane_known);
  p.slots = known ? min_int(machine->cores, shares) : machine->cores;
  p.seconds = plan_seconds(machine, l, &p);
  return p;
}

void matrices_list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  Layer layer = layer_of(graph, conv);
  for (int by_groups = 0; by_groups <= 1; by_groups++)
    for (int64_t pairs = 1; pairs < 4 * ceil_div(layer.out_h * layer.out_w, LEAST_BLOCK) && pairs <= 256; pairs *= 2) {
      Knobs knobs = {{[PAIRS] = (int)pairs, [BY_GROUPS] = by_groups}};
      Plan plan = plan_of(graph->config->machine, &layer, &knobs);
      candidates_add(candidates, &knobs, plan.seconds, true);
    }
}

void matrices_fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)graph, (void)node, (void)conv;
  int *value = knobs->value;
  value[PAIRS] = (int)clamp_int(1, value[PAIRS], MAX_BLOCK);
  value[BY_GROUPS] = value[BY_GROUPS] != 0;
}

/* "matrices_int8_b4x56_groups_3x3s1c64o64_56x56": the block, then the differences between layers of one plan. */
static const char *text_of(Arena *arena, const char *name, const Convolution *conv, const Plan *p) {
  Text text = text_new(arena);
  text_add(&text, "%s_b%lldx%lld%s", name, (long long)p->block_h, (long long)p->block_w, p->by_groups ? "_groups" : "");
  layer_text(&text, conv, conv->h.out, conv->w.out);
  return text.data;
}

ConvSchedule *matrices_make(Graph *graph, const Convolution *conv, const Knobs *knobs, const char *name) {
  MatricesSchedule *schedule = ARENA_NEW(graph->arena, MatricesSchedule);
  schedule->base.reads_residual_last = true;
  schedule->layer = layer_of(graph, conv);
  schedule->plan = plan_of(graph->config->machine, &schedule->layer, knobs);
  schedule->base.seconds = schedule->plan.seconds;
  schedule->base.base.text = text_of(graph->arena, name, conv, &schedule->plan);
  return &schedule->base;
}

/* ---- memory ---- */

static int64_t slot_bytes(const MatricesSchedule *s) { return strip_bytes(&s->layer, &s->plan) + MATRICES_SUM_BYTES; }

void matrices_scratch(Graph *graph, Node *node) {
  const MatricesSchedule *schedule = matrices_schedule_of(node);
  graph_slots(graph, node, schedule->plan.slots, slot_bytes(schedule));
}

/* Of a part. */
static int64_t part_bytes(const Layer *l) { return l->vectors * l->lines * MATRIX; }

int64_t matrices_weights_bytes(const MatricesLayer *layer) { return layer->parts * part_bytes(layer); }

/* Where the weights of an output channel begin, and how far the next line's are. */
static int64_t column_of(const Layer *l, int64_t kernel, int64_t lanes, int64_t *line) {
  int64_t vector = kernel / lanes, first = vector / VECTORS * VECTORS;
  *line = min_int(VECTORS, l->vectors - first) * MATRIX;
  return first * l->lines * MATRIX + (vector - first) * MATRIX + kernel % lanes * STEP_CHANNELS;
}

/* Where a weight is in its window. */
static int64_t place_of(const Layer *l, int64_t channel, int64_t r, int64_t s) {
  int64_t row = r / l->fold, in_pixel = r % l->fold * l->channels + channel * l->element;
  if (l->pieces > ceil_div(l->h.kernel, l->fold)) return (row * l->w.kernel + s) * l->piece_lines * LINE + in_pixel;
  return row * l->piece_lines * LINE + s * l->fold * l->channels + in_pixel;
}

int64_t matrices_weight_at(const MatricesSchedule *schedule, int64_t kernel, int64_t channel, int64_t tap,
                           int64_t lanes) {
  const Layer *layer = &schedule->layer;
  const Convolution *conv = &schedule->base.conv;
  int64_t group = kernel / conv->kernels, part = group / layer->merged, first = part * layer->merged;
  int64_t line, column = column_of(layer, kernel - first * conv->kernels, lanes, &line);
  int64_t in_part = (group - first) * conv->channels + channel;
  int64_t at = place_of(layer, in_part, tap / layer->w.kernel, tap % layer->w.kernel);
  return part * part_bytes(layer) + column + at / LINE * line + at % LINE / STEP_CHANNELS * LINE + at % STEP_CHANNELS;
}

/* ---- the call ---- */

void matrices_knobs(KernelSpec *spec, const MatricesSchedule *schedule) {
  const Layer *layer = &schedule->layer;
  const Plan *plan = &schedule->plan;
  kernel_window(spec, 2, &layer->w, &layer->h, NULL);
  kernel_plane(spec, &layer->h, &layer->w);
  kernel_knob(spec, "IN_BLOCK", schedule->base.conv.x_block);
  kernel_knob(spec, "IN_BLOCKS", layer->blocks);
  kernel_knob(spec, "FOLD", layer->fold);
  kernel_knob(spec, "PHASES", layer->phases);
  kernel_knob(spec, "BLOCK_H", plan->block_h);
  kernel_knob(spec, "BLOCK_W", plan->block_w);
  kernel_knob(spec, "ROWS", plan->rows);
  kernel_knob(spec, "ACROSS", plan->across);
  kernel_knob(spec, "OC_TAIL", layer->vectors % VECTORS);
  kernel_knob(spec, "BY_GROUPS", plan->by_groups);
}

void matrices_operands(Call *call, const Graph *graph, const Node *node) {
  const MatricesSchedule *schedule = matrices_schedule_of(node);
  operand_sharing(call, "y", SHARED_APART);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_integer(call, "kernels", schedule->layer.merged * schedule->base.conv.kernels);
  operand_integer(call, "parts", schedule->layer.parts);
  operand_integer(call, "strip_bytes", strip_bytes(&schedule->layer, &schedule->plan));
  operand_integer(call, "slots", schedule->plan.slots);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(schedule)));
  operands_plane(call, &schedule->layer.h, &schedule->layer.w);
}
