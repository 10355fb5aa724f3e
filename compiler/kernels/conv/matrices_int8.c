/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of quantised tensors of one group by matrices in registers (templates/conv_matrices_int8.c), with
 * results of direct_int8. A pixel's window is a row of a panel, so that what is multiplied is two matrices of pixels by
 * two of output channels, whatever the window.
 */
#include <math.h>

#include "kernels/conv/convolution.h"
#include "kernels/conv/cost.h"
#include "kernels/conv/requantise.h"
#include "kernels/gemm/matrices.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"
#include "template/specialise.h"

/* Of the template. */
enum { LINE = MATRIX_BYTES, VECTORS = 2, MATRIX = MATRIX_ROWS * LINE, SUM_BYTES = 2 * VECTORS * MATRIX };
enum { MAX_BLOCK = 1 << 16 }; /* pairs */

/* What plans are made of, at the dims' optimum. */
typedef struct Layer {
  int64_t images, pairs, rows, span; /* pairs: of an image; rows: pixels of a matrix; span: of a pair */
  bool images_known;
  int64_t window, lines, panel_row; /* bytes of a pixel's window; in lines; to the next pixel */
  int64_t vectors, groups;          /* of output channels */
  int64_t copies;                   /* pieces of a pixel's window that are side by side in x */
  bool residual;
} Layer;

typedef struct Plan {
  bool by_groups;      /* workers own groups of output channels, else blocks of pairs */
  int64_t block_pairs; /* maximum of a block */
  int64_t slots;       /* workers with scratch memory */
  double seconds;
} Plan;

typedef struct MatricesSchedule {
  ConvSchedule base;
  ConvAxis h, w; /* a plane under a 1x1 window without padding or stride is one row */
  Layer layer;
  Plan plan;
} MatricesSchedule;

static const MatricesSchedule *schedule_of(const Node *node) { return (const MatricesSchedule *)node->schedule; }

/* ---- which layers ---- */

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  return graph->config->target->has_matrices && conv->groups == 1 && axis_is_known(&conv->h) && axis_is_known(&conv->w);
}

static bool suits(const Graph *graph, const Node *node, const Convolution *conv) {
  (void)node;
  return conv->x_block <= graph->config->target->lanes && dim_optimum(conv->x->shape[0]) > 0;
}

static Layer layer_of(const Graph *graph, const Convolution *conv) {
  const Dim *images = conv->x->shape[0];
  int64_t pixels = dim_value(conv->h.out) * dim_value(conv->w.out), taps = conv->h.kernel * conv->w.kernel;
  int64_t blocks = ceil_div(conv->channels, conv->x_block);
  Layer l = {.images = max_int(1, dim_optimum(images)),
             .images_known = dim_is_const(images),
             .pairs = ceil_div(pixels, 2 * MATRIX_ROWS),
             .window = taps * blocks * conv->x_block,
             .vectors = ceil_div(conv->kernels, graph->config->target->lanes),
             .copies = blocks * (conv->w.dilation == 1 ? conv->h.kernel : taps),
             .residual = conv->residual != NULL};
  l.rows = ceil_div(pixels, 2 * l.pairs);
  l.span = min_int(pixels, 2 * l.rows);
  l.lines = ceil_div(l.window, LINE);
  l.panel_row = (l.lines | 1) * LINE; /* with an even number, few sets of the caches would be used */
  l.groups = ceil_div(l.vectors, VECTORS);
  return l;
}

/* ---- time ---- */

/* Fitted to layers of ResNet-50 on one core of Emerald Rapids at 3 GHz, in cycles. */
static const double CYCLES_A_LINE = 1.75;    /* of two matrices and their weights, which are loaded for each product */
static const double CYCLES_A_SUM = 25;       /* of a matrix: to start, and to store it */
static const double CYCLES_A_VECTOR = 2.7;   /* of results */
static const double CYCLES_A_RESIDUAL = 2.5; /* more, with one */
static const double CYCLES_A_COPY = 1.5;     /* of a panel */
static const double CYCLES_A_BYTE = 0.08;    /* of a panel, where it and weights leave L1 */
static const double UNHIDDEN = 0.15;         /* part of the shorter of computing and reading */
static const double USABLE = 0.7;            /* share of a cache that data may fill and stay */

static int64_t panel_of(const Layer *l, const Plan *p) { return p->block_pairs * l->span * l->panel_row; }

/* The work of the busiest worker. */
typedef struct Share {
  double blocks, pairs, vectors; /* pairs: of all its blocks */
} Share;

static Share share_of(const Layer *l, const Plan *p) {
  int64_t pairs = l->images * l->pairs, blocks = ceil_div(pairs, p->block_pairs);
  if (p->by_groups)
    return (Share){(double)blocks, (double)pairs, (double)min_int(l->vectors, VECTORS * ceil_div(l->groups, p->slots))};
  int64_t own = ceil_div(blocks, p->slots);
  return (Share){(double)own, (double)ceil_div(pairs * own, blocks), (double)l->vectors};
}

static double product_cycles(const Layer *l, const Share *s) {
  double matrices = s->pairs * s->vectors * 2, rows = (double)l->rows, lines = (double)l->lines;
  double products =
      CYCLES_A_LINE * (s->pairs * lines * (ceil(s->vectors / VECTORS) * 2 * rows + s->vectors * MATRIX_ROWS));
  double vectors = matrices * rows * (CYCLES_A_VECTOR + (l->residual ? CYCLES_A_RESIDUAL : 0));
  return products + matrices * CYCLES_A_SUM + vectors;
}

static double panel_cycles(const Machine *m, const Layer *l, const Plan *p, const Share *s) {
  double pixels = s->pairs * (double)l->span, kept = (double)panel_of(l, p) + s->vectors * (double)(l->lines * MATRIX);
  double bytes = kept > USABLE * (double)m->l1_bytes ? CYCLES_A_BYTE * (double)l->window : 0;
  return pixels * (CYCLES_A_COPY * (double)l->copies + bytes);
}

/* Time to read bytes repeatedly, from the cache that holds them. */
static double again_seconds(const Machine *m, double bytes, double times) {
  if (bytes <= USABLE * (double)m->l2_bytes) return 0;
  return bytes * times / (1e9 * (bytes <= USABLE * (double)m->l3_bytes ? m->l3_gbps : m->dram_gbps));
}

static double read_seconds(const Machine *m, const Layer *l, const Plan *p, const Share *s) {
  double weights = s->vectors * (double)(l->lines * MATRIX);
  double first = weights / (1e9 * m->dram_gbps * (p->by_groups || p->slots == 1 ? 1 : SAME_DATA));
  return first + again_seconds(m, weights, s->blocks - 1) +
         again_seconds(m, (double)panel_of(l, p), s->blocks * s->vectors / VECTORS);
}

static double plan_seconds(const Machine *m, const Layer *l, const Plan *p) {
  Share share = share_of(l, p);
  double products = seconds_of_cycles(m, product_cycles(l, &share)), panels = panel_cycles(m, l, p, &share);
  return overlapped(products, read_seconds(m, l, p, &share), UNHIDDEN) + seconds_of_cycles(m, panels);
}

/* ---- choice ---- */

static Plan plan_of(const Machine *machine, const Layer *l, const Knobs *knobs) {
  Plan p = {.by_groups = knobs->value[KNOB_matrices_int8_by_groups]};
  int64_t pairs = l->images * l->pairs, blocks = ceil_div(pairs, knobs->value[KNOB_matrices_int8_pairs]);
  if (!p.by_groups) blocks = min_int(pairs, round_up(blocks, machine->cores));
  p.block_pairs = ceil_div(pairs, blocks);
  int64_t shares = p.by_groups ? l->groups : ceil_div(pairs, p.block_pairs);
  p.slots = l->images_known || p.by_groups ? min_int(machine->cores, shares) : machine->cores;
  p.seconds = plan_seconds(machine, l, &p);
  return p;
}

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  Layer layer = layer_of(graph, conv);
  for (int by_groups = 0; by_groups <= 1; by_groups++)
    for (int64_t pairs = 1; pairs < 2 * layer.images * layer.pairs && pairs <= 64; pairs *= 2) {
      Knobs knobs = {{[KNOB_matrices_int8_pairs] = (int)pairs, [KNOB_matrices_int8_by_groups] = by_groups}};
      Plan plan = plan_of(graph->config->machine, &layer, &knobs);
      candidates_add(candidates, &knobs, plan.seconds, true);
    }
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)graph, (void)node, (void)conv;
  int *value = knobs->value;
  value[KNOB_matrices_int8_pairs] = (int)clamp_int(1, value[KNOB_matrices_int8_pairs], MAX_BLOCK);
  value[KNOB_matrices_int8_by_groups] = value[KNOB_matrices_int8_by_groups] != 0;
}

/* "matrices_int8_b8_groups_3x3s1c64o64_56x56": the block, then the differences between layers of one plan. */
static const char *text_of(Arena *arena, const Convolution *conv, const Plan *p) {
  Text text = text_new(arena);
  text_add(&text, "matrices_int8_b%lld%s", (long long)p->block_pairs, p->by_groups ? "_groups" : "");
  layer_text(&text, conv, conv->h.out, conv->w.out);
  return text.data;
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  MatricesSchedule *schedule = ARENA_NEW(graph->arena, MatricesSchedule);
  schedule->base.reads_residual_last = true;
  convolution_rows(graph->dims, conv, &schedule->h, &schedule->w);
  schedule->layer = layer_of(graph, conv);
  schedule->plan = plan_of(graph->config->machine, &schedule->layer, knobs);
  schedule->base.seconds = schedule->plan.seconds;
  schedule->base.base.text = text_of(graph->arena, conv, &schedule->plan);
  return &schedule->base;
}

/* ---- memory ---- */

static int64_t panel_bytes(const MatricesSchedule *s) { return panel_of(&s->layer, &s->plan); }

static int64_t slot_bytes(const MatricesSchedule *s) { return panel_bytes(s) + SUM_BYTES; }

static void scratch(Graph *graph, Node *node) {
  const MatricesSchedule *schedule = schedule_of(node);
  graph_slots(graph, node, schedule->plan.slots, slot_bytes(schedule));
}

/* Where the weights of an output channel begin, and how far the next line's are. */
static int64_t column_of(const Layer *l, int64_t kernel, int64_t lanes, int64_t *line) {
  int64_t vector = kernel / lanes, first = vector / VECTORS * VECTORS;
  *line = min_int(VECTORS, l->vectors - first) * MATRIX;
  return first * l->lines * MATRIX + (vector - first) * MATRIX + kernel % lanes * STEP_CHANNELS;
}

static void pack_weights(const Graph *graph, const MatricesSchedule *s, const int8_t *source, int8_t *packed) {
  const Convolution *conv = &s->base.conv;
  int64_t taps = conv->h.kernel * conv->w.kernel, block = conv->x_block;
  for (int64_t k = 0; k < conv->kernels; k++) {
    int64_t line, column = column_of(&s->layer, k, graph->config->target->lanes, &line);
    for (int64_t c = 0; c < conv->channels; c++)
      for (int64_t tap = 0; tap < taps; tap++) {
        int64_t at = (c / block * taps + tap) * block + c % block;
        packed[column + at / LINE * line + at % LINE / STEP_CHANNELS * LINE + at % STEP_CHANNELS] = *source++;
      }
  }
}

static void pack(Graph *graph, Node *node) {
  const MatricesSchedule *schedule = schedule_of(node);
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  int64_t bytes = schedule->layer.vectors * schedule->layer.lines * MATRIX;
  int8_t *weights = ARENA_ARRAY(graph->arena, int8_t, bytes);
  pack_weights(graph, schedule, numbers.weights, weights);
  const char *name = schedule->base.conv.weights->name;
  graph_pack(graph, node, graph_constant(graph, name, RNNCC_I8, 1, &bytes, weights));
  pack_requantise(graph, node, &numbers, START_OF_BYTES);
}

/* ---- the call ---- */

static KernelSpec *spec_of(const Graph *graph, const Node *node) {
  const MatricesSchedule *schedule = schedule_of(node);
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_matrices_int8");
  kernel_window(spec, 2, &schedule->w, &schedule->h, NULL);
  kernel_plane(spec, &schedule->h, &schedule->w);
  kernel_knob(spec, "IN_BLOCK", schedule->base.conv.x_block);
  kernel_knob(spec, "OC_TAIL", schedule->layer.vectors % VECTORS);
  kernel_knob(spec, "BY_GROUPS", schedule->plan.by_groups);
  knobs_requantise(spec, graph, node);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const Graph *graph = program->graph;
  const MatricesSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  Call *call = kernel_call(program, node, spec_of(graph, node));
  operands_requantise(call, graph, node);
  operand_sharing(call, "y", SHARED_APART);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_integer(call, "channels", conv->channels);
  operand_integer(call, "kernels", conv->kernels);
  operand_integer(call, "lines", schedule->layer.lines);
  operand_integer(call, "panel_row", schedule->layer.panel_row);
  operand_integer(call, "block_pairs", schedule->plan.block_pairs);
  operand_integer(call, "panel_bytes", panel_bytes(schedule));
  operand_integer(call, "slots", schedule->plan.slots);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(schedule)));
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 1);
  call_products(call, RNNCC_I8);
}

const ConvAlgorithm convolution_matrices_int8 = {.kind = {"matrices_int8", matrices_int8_knobs},
                                                 .integer = true,
                                                 .runs_blocked = runs_blocked,
                                                 .suits = suits,
                                                 .list = list,
                                                 .fit = fit,
                                                 .make = make,
                                                 .spec = spec_of,
                                                 .scratch = scratch,
                                                 .pack = pack,
                                                 .lower = lower_node};
