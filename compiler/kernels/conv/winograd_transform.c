/* SPDX-License-Identifier: MIT */
#include "kernels/conv/winograd_transform.h"

#include "ir/family.h"
#include "machine/machine.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"

static const OpInfo op_winograd_weights = {
    .kind = OP_WinogradWeights,
    .name = "WinogradWeights",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .attributes = (const AttributeSpec[]){{0}},
    .layout = LAYOUT_DEPENDENT,
    .family = &family_winograd_weights,
};

enum { CHANNELS = 8 }; /* taken at once: the least whose runs a cache takes well, and whose points it has room for */

typedef struct TransformSchedule {
  Schedule base;
  WinogradWeights packed; /* of a group */
  int64_t groups;
} TransformSchedule;

/* Of a worker: the points, and the windows in whole squares. */
static int64_t slot_bytes(const WinogradWeights *w) {
  int64_t windows = round_up((int64_t)CHANNELS * w->form.taps_h * w->form.taps_w, w->lanes);
  return (winograd_points(&w->form) * CHANNELS + windows) * w->lanes * (int64_t)sizeof(float);
}

static const char *text_of(Arena *arena, const WinogradWeights *w, int64_t groups) {
  const WinogradForm *f = &w->form;
  return arena_format(arena, "winograd_weights%dx%d_%dx%d_oc%d_c%lldo%lldg%lld", f->tile_h, f->tile_w, f->taps_h,
                      f->taps_w, w->oc_vectors, (long long)w->channels, (long long)w->kernels, (long long)groups);
}

Value *winograd_transform(Graph *graph, Value *w, const WinogradWeights *packed, int64_t groups) {
  TransformSchedule *schedule = ARENA_NEW(graph->arena, TransformSchedule);
  *schedule = (TransformSchedule){{.text = text_of(graph->arena, packed, groups)}, *packed, groups};
  Node *node = graph_node(graph, &op_winograd_weights, w->name, 1, 1);
  node->where = w->where;
  node->schedule = &schedule->base;
  node->inputs[0] = w;
  Value *points = graph_value(graph, w->name, w->where);
  points->dtype = RNNCC_F32;
  points->rank = 1;
  points->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  points->shape[0] = dim_const(graph->dims, groups * winograd_weights_floats(packed));
  graph_set_output(node, 0, points);
  graph_slots(graph, node, graph->config->machine->cores, slot_bytes(packed));
  return points;
}

static void lower_node(Program *program, Node *node) {
  const TransformSchedule *schedule = (const TransformSchedule *)node->schedule;
  const WinogradWeights *w = &schedule->packed;
  KernelSpec *spec = kernel_spec(program, "winograd_weights");
  kernel_knob(spec, "TILE_H", w->form.tile_h);
  kernel_knob(spec, "TILE_W", w->form.tile_w);
  kernel_knob(spec, "WINDOW_H", w->form.taps_h);
  kernel_knob(spec, "WINDOW_W", w->form.taps_w);
  kernel_knob(spec, "OC_VECTORS", w->oc_vectors);
  kernel_knob(spec, "CHANNELS", CHANNELS);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "w", node->inputs[0], READ);
  operand_value(call, "packed", node->outputs[0], WRITE);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_integer(call, "groups", schedule->groups);
  operand_integer(call, "channels", w->channels);
  operand_integer(call, "kernels", w->kernels);
  operand_integer(call, "slots", program->graph->config->machine->cores);
  operand_integer(call, "slot", graph_slot_bytes(program->graph, node, slot_bytes(w)) / (int64_t)sizeof(float));
  call_touches(call, node->inputs[0]);
  call_touches(call, node->outputs[0]);
}

const KernelFamily family_winograd_weights = {.lower = lower_node};
