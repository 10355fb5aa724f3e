/* SPDX-License-Identifier: MIT */
/* The weights' gradient of a convolution, of row-major tensors: templates/conv_weight_gradient.c. */
#include "kernels/conv/convolution.h"
#include "kernels/conv/padded_input.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"

typedef struct GradientSchedule {
  Schedule base;
  Convolution conv;
  PaddedInput in;
  int k_vectors, channels, taps; /* of a tile */
} GradientSchedule;

enum { MAX_TAPS = 16, MAX_CHANNELS = 16 }; /* of the template */

static const GradientSchedule *schedule_of(const Node *node) { return (const GradientSchedule *)node->schedule; }

/* The most in a part, of parts of nearly equal size of at most `most`. */
static int even_part(int64_t all, int64_t most) { return (int)ceil_div(all, ceil_div(all, most)); }

/* Vectors of output channels: each loads x once for several products; but of few registers most are sums. */
static int choose_vectors(const Target *target, const Convolution *conv) {
  int most = target_has_few_registers(target) ? 2 : 4;
  return even_part(ceil_div(conv->kernels, target->lanes), most);
}

/* Registers hold the sums, a vector of the gradient for each vector of output channels, and an element of x. */
static void choose_tile(const Target *target, GradientSchedule *schedule) {
  int64_t vectors = choose_vectors(target, &schedule->conv);
  int64_t sums = (target->vector_registers - 1 - vectors) / vectors;
  schedule->k_vectors = (int)vectors;
  schedule->taps = even_part(schedule->in.w.kernel, min_int(sums, MAX_TAPS));
  schedule->channels = even_part(schedule->conv.channels, min_int(max_int(1, sums / schedule->taps), MAX_CHANNELS));
}

static void choose(Graph *graph, Node *node) {
  GradientSchedule *schedule = ARENA_NEW(graph->arena, GradientSchedule);
  schedule->conv = convolution_of(graph, node, (NodeLayout){LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR});
  schedule->in = padded_input_of(graph, &schedule->conv);
  padded_input_size(graph, &schedule->in, schedule->in.w.out);
  choose_tile(graph->config->target, schedule);
  schedule->base.text = arena_format(graph->arena, "gradient_%lldx%llds%lldc%lldo%lldg%lld_oc%dc%dt%d",
                                     (long long)schedule->conv.h.kernel, (long long)schedule->conv.w.kernel,
                                     (long long)schedule->conv.w.stride, (long long)schedule->conv.channels,
                                     (long long)schedule->conv.kernels, (long long)schedule->conv.groups,
                                     schedule->k_vectors, schedule->channels, schedule->taps);
  node->schedule = &schedule->base;
}

/* ---- memory: the padded input, then the sums ---- */

static const Dim *padded_bytes(Graph *graph, const Node *node) {
  const GradientSchedule *schedule = schedule_of(node);
  DimTable *dims = graph->dims;
  if (schedule->in.dense) return dim_const(dims, 0);
  const Dim *floats = padded_input_floats(graph, &schedule->in, node->inputs[0]);
  return dim_mul(dims, floats, dim_const(dims, (int64_t)sizeof(float)));
}

static int64_t sums_bytes(const Graph *graph, const GradientSchedule *schedule) {
  const Convolution *conv = &schedule->conv;
  int64_t lanes = graph->config->target->lanes, width = schedule->k_vectors * lanes;
  int64_t tile = schedule->channels * schedule->taps * width * (int64_t)sizeof(float);
  int64_t windows = schedule->in.d.kernel * schedule->in.h.kernel * ceil_div(schedule->in.w.kernel, schedule->taps);
  int64_t tiles = ceil_div(conv->kernels, width) * ceil_div(conv->channels, schedule->channels);
  return saturating_mul(saturating_mul(conv->groups, tiles), saturating_mul(windows, tile));
}

static void scratch(Graph *graph, Node *node) {
  const Dim *sums = dim_const(graph->dims, sums_bytes(graph, schedule_of(node)));
  graph_scratch(graph, node, "padded input and sums", dim_add(graph->dims, padded_bytes(graph, node), sums));
}

/* ---- the call ---- */

static KernelSpec *gradient_spec(Program *program, const Node *node) {
  const GradientSchedule *schedule = schedule_of(node);
  KernelSpec *spec = kernel_spec(program, "conv_weight_gradient");
  kernel_window(spec, 3, &schedule->in.w, &schedule->in.h, &schedule->in.d);
  kernel_knob(spec, "K_VECTORS", schedule->k_vectors);
  kernel_knob(spec, "CHANNELS", schedule->channels);
  kernel_knob(spec, "CHANNEL_TAIL", schedule->conv.channels % schedule->channels);
  kernel_knob(spec, "TAPS", schedule->taps);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const GradientSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->conv;
  const Value *x = conv->x, *d = node->inputs[2];
  const Dim *padded = padded_bytes(program->graph, node);
  lower_padded_input(program, node, &schedule->in, x, node->scratch, padded);
  Call *call = kernel_call(program, node, gradient_spec(program, node));
  operands_padded_input(program, call, &schedule->in, x, node->scratch, padded);
  operand_value(call, "d", d, READ);
  operand_value(call, "dw", node->outputs[0], WRITE);
  operand_part(call, "sums", node->scratch, padded, NULL, READ_WRITE);
  operand_dim(call, "n", x->shape[0]);
  operand_integer(call, "groups", conv->groups);
  operand_integer(call, "channels", conv->channels);
  operand_integer(call, "kernels", conv->kernels);
  operand_dim(call, "out_d", schedule->in.d.out);
  operand_dim(call, "out_h", schedule->in.h.out);
  operand_dim(call, "out_w", schedule->in.w.out);
  call_flops_of(call, 2 * (double)(conv->channels * conv->d.kernel * conv->h.kernel * conv->w.kernel), d);
  call_products(call, RNNCC_F32);
  call_bytes_of(call, 4, x);
  call_bytes_of(call, 4, d);
  call_bytes_of(call, 4, node->outputs[0]);
}

const KernelFamily family_conv_gradient = {.schedule = choose, .scratch = scratch, .lower = lower_node};
