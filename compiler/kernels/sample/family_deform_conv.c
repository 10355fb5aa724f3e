/* SPDX-License-Identifier: MIT */
/* DeformConv over planes: samples, and the product of them with the weights. */
#include "ir/family.h"
#include "kernels/conv/convolution.h"
#include "kernels/gemm/gemm.h"
#include "machine/machine.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"

typedef struct DeformSchedule {
  Schedule base;
  Convolution conv;
  int vectors;
  BlockRows rows;
  int64_t chunk; /* channels that are sampled at a time */
} DeformSchedule;

/* Blocks of outputs for each worker: less would leave some with more to do than others. */
enum { MIN_BLOCKS = 4 };

static const DeformSchedule *schedule_of(const Node *node) { return (const DeformSchedule *)node->schedule; }

static int64_t window_of(const Convolution *conv) { return conv->h.kernel * conv->w.kernel; }

static int64_t block_width(const Graph *graph, int vectors) { return (int64_t)vectors * graph->config->target->lanes; }

static int choose_vectors(const Graph *graph, const Convolution *conv) {
  int64_t outputs = dim_optimum(conv->h.out) * dim_optimum(conv->w.out);
  int64_t parts = dim_optimum(conv->x->shape[0]) * conv->groups, least = MIN_BLOCKS * graph->config->machine->cores;
  int vectors = gemm_panel_vectors(graph->config->target, outputs);
  while (vectors > 1 && parts * ceil_div(outputs, block_width(graph, vectors)) < least) vectors--;
  return vectors;
}

/* Half of the second level of the cache holds their samples. */
static int64_t choose_chunk(const Graph *graph, const Convolution *conv, int vectors) {
  int64_t bytes = window_of(conv) * block_width(graph, vectors) * (int64_t)sizeof(float);
  return clamp_int(1, graph->config->target->l2_bytes / 2 / bytes, conv->channels);
}

static void schedule(Graph *graph, Node *node) {
  DeformSchedule *s = ARENA_NEW(graph->arena, DeformSchedule);
  s->conv = convolution_tensors(graph, node);
  s->conv.channels = dim_value(s->conv.weights->shape[1]);
  s->conv.kernels = dim_value(s->conv.weights->shape[0]) / s->conv.groups;
  s->conv.bias = node_input(node, 3);
  s->vectors = choose_vectors(graph, &s->conv);
  s->rows = block_rows(register_rows(graph->config->target, s->vectors), dim_const(graph->dims, s->conv.kernels), 1);
  s->chunk = choose_chunk(graph, &s->conv, s->vectors);
  s->base.text = arena_format(graph->arena, "deform_%lldx%lld_c%lldo%lldg%lld_v%dk%lld", (long long)s->conv.h.kernel,
                              (long long)s->conv.w.kernel, (long long)s->conv.channels, (long long)s->conv.kernels,
                              (long long)s->conv.groups, s->vectors, (long long)s->chunk);
  node->schedule = &s->base;
}

static int64_t slot_bytes(const Graph *graph, const DeformSchedule *s) {
  return s->chunk * window_of(&s->conv) * block_width(graph, s->vectors) * (int64_t)sizeof(float);
}

static void scratch(Graph *graph, Node *node) {
  graph_slots(graph, node, graph->config->machine->cores, slot_bytes(graph, schedule_of(node)));
}

static void give_extents(const Graph *graph, Call *call, const Convolution *conv) {
  const ConvAxis *const axes[] = {&conv->h, &conv->w};
  const Dim *extents[12];
  int n = 0;
  for (int k = 0; k < 2; k++) {
    extents[n++] = axes[k]->in;
    extents[n++] = axes[k]->out;
    extents[n++] = dim_const(graph->dims, axes[k]->kernel);
    extents[n++] = dim_const(graph->dims, axes[k]->stride);
    extents[n++] = dim_const(graph->dims, axes[k]->dilation);
    extents[n++] = axes[k]->pad_begin;
  }
  operand_dim_array(call, "extents", n, extents);
}

static void give_optional(Call *call, const char *parameter, const Value *value) {
  if (value)
    operand_value(call, parameter, value, READ);
  else
    operand_null(call, parameter);
}

/* A sample takes four multiply-adds, and each kernel of the group one. */
static void give_cost(Call *call, const Node *node, const DeformSchedule *s) {
  const Convolution *conv = &s->conv;
  double samples = (double)(conv->channels * window_of(conv)) / (double)conv->kernels; /* of an output */
  call_flops_of(call, 2 * samples * (double)(4 + conv->kernels), conv->y);
  for (int i = 0; i < node->n_inputs; i++) call_touches(call, node->inputs[i]);
  call_touches(call, conv->y);
}

static void lower_deform_conv(Program *program, Node *node) {
  Graph *graph = program->graph;
  const DeformSchedule *s = schedule_of(node);
  const Value *mask = node_input(node, 4);
  KernelSpec *spec = kernel_spec(program, "deform_conv");
  kernel_knob(spec, "VECTORS", s->vectors);
  kernel_knob(spec, "ROWS", s->rows.most);
  kernel_knob(spec, "MIN_ROWS", s->rows.least);
  kernel_knob(spec, "MASKED", mask != NULL);
  kernel_knob(spec, "BIASED", s->conv.bias != NULL);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "w", node->inputs[1], READ);
  operand_value(call, "offset", node->inputs[2], READ);
  give_optional(call, "bias", s->conv.bias);
  give_optional(call, "mask", mask);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_dim(call, "n", s->conv.x->shape[0]);
  operand_integer(call, "groups", s->conv.groups);
  operand_integer(call, "channels", s->conv.channels);
  operand_integer(call, "kernels", s->conv.kernels);
  operand_integer(call, "offset_groups", node_int(node, ATTR_offset_group));
  operand_integer(call, "chunk", s->chunk);
  give_extents(graph, call, &s->conv);
  operand_integer(call, "slots", graph->config->machine->cores);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(graph, s)) / (int64_t)sizeof(float));
  give_cost(call, node, s);
}

const KernelFamily family_deform_conv = {.schedule = schedule, .scratch = scratch, .lower = lower_deform_conv};
