/* SPDX-License-Identifier: MIT */
/* CTCLikelihood: workers share the samples; each has a table of logarithms over frames and states. */
#include "ir/family.h"
#include "machine/machine.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"

static bool has_gradient(const Node *node) { return node_output(node, 1) != NULL; }

/* Rows of states: for the gradient one a frame, else two in turns; and one more. */
static int64_t slot_bytes(const Node *node) {
  int64_t states = saturating_add(saturating_mul(2, dim_upper(node->inputs[1]->shape[1])), 1);
  int64_t rows = has_gradient(node) ? saturating_add(dim_upper(node->inputs[0]->shape[0]), 1) : 3;
  return saturating_mul(saturating_mul(rows, states), (int64_t)sizeof(double));
}

static void scratch(Graph *graph, Node *node) {
  graph_slots(graph, node, graph->config->machine->cores, slot_bytes(node));
}

static void lower_ctc(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *scores = node->inputs[0], *targets = node->inputs[1];
  KernelSpec *spec = kernel_spec(program, "ctc");
  kernel_knob(spec, "GRADIENT", has_gradient(node));
  kernel_knob(spec, "ZERO_INFINITY", node_int(node, ATTR_zero_infinity) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "scores", scores, READ);
  operand_value(call, "targets", targets, READ);
  operand_value(call, "steps", node->inputs[2], READ);
  operand_value(call, "lengths", node->inputs[3], READ);
  operand_value(call, "loss", node->outputs[0], WRITE);
  operand_value(call, "gradient", node_output(node, 1), WRITE);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_integer(call, "slots", graph->config->machine->cores);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(node)) / (int64_t)sizeof(double));
  operand_dim(call, "most_steps", scores->shape[0]);
  operand_dim(call, "batch", scores->shape[1]);
  operand_dim(call, "classes", scores->shape[2]);
  operand_dim(call, "most_labels", targets->shape[1]);
  operand_integer(call, "blank", node_int(node, ATTR_blank));
  call_flops(call, has_gradient(node) ? 300 : 150, EXTENTS(scores->shape[0], scores->shape[1], targets->shape[1]));
  call_touches(call, scores);
  call_touches(call, node_output(node, 1));
}

const KernelFamily family_ctc = {.scratch = scratch, .lower = lower_ctc};
