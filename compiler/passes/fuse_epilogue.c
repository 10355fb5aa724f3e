/* SPDX-License-Identifier: MIT */
/*
 * Element-wise nodes (bias and residual adds, activations) move into the kernel that writes their input, if its family
 * takes them and nothing else reads that input. The result is then written to memory once.
 */
#include "ir/family.h"
#include "passes.h"
#include "shapes/shape.h"
#include "support/list.h"

/* Bounds the kernel's text; longer chains gain little. */
enum { MAX_EPILOGUE = 8 };

static const bool commutes[N_OPS] = {[OP_Add] = true, [OP_Mul] = true, [OP_Max] = true, [OP_Min] = true,
                                     [OP_And] = true, [OP_Or] = true,  [OP_Xor] = true, [OP_Equal] = true};

/* Where the second operand of a step that commutes begins: QLinearAdd's have scales and zero points. 0: none. */
static int second_operand(const Node *node) {
  if (is_op(node, OP_QLinearAdd)) return 3;
  return node->n_inputs == 2 && commutes[node->op->kind];
}

static void swap_operands(Node *node) {
  int second = second_operand(node);
  for (int i = 0; i < second; i++) {
    Value *first = node->inputs[i];
    node->inputs[i] = node->inputs[second + i];
    node->inputs[second + i] = first;
  }
}

/* Can the producer of the step's first input take the step as epilogue? */
static bool takes(const UseList *uses, const Node *step) {
  const Value *between = step->inputs[0];
  const Node *host = between ? between->producer : NULL;
  if (!host || host->n_outputs != 1 || uses->single[between->id] != step) return false;
  if (host->n_epilogue == MAX_EPILOGUE) return false;
  const KernelFamily *family = host->op->family;
  if (!family || !family->takes_epilogue || !shapes_agree(between, step->outputs[0])) return false;
  return family->takes_epilogue(host, step);
}

static int position(const Value *value) { return value && value->producer ? value->producer->id : -1; }

/* The step's host, whose result becomes the step's first input; NULL if there is none. Of two the later one, because it
 * needs the other's result. */
static Node *find_host(const UseList *uses, Node *step) {
  if (step->op->layout != LAYOUT_OBLIVIOUS || step->n_outputs != 1 || step->n_inputs == 0) return NULL;
  int second = second_operand(step);
  if (second && position(step->inputs[second]) > position(step->inputs[0])) swap_operands(step);
  if (takes(uses, step)) return step->inputs[0]->producer;
  if (!second) return NULL;
  swap_operands(step);
  if (takes(uses, step)) return step->inputs[0]->producer;
  swap_operands(step);
  return NULL;
}

/* Makes absent optional inputs explicit, so that an operand of the epilogue is not read as one. */
static void fill_optional_inputs(Graph *graph, Node *host) {
  while (host->n_epilogue == 0 && host->n_inputs < host->op->max_inputs)
    *LIST_APPEND(graph->arena, host->inputs, host->n_inputs) = NULL;
}

static void fuse(Graph *graph, Node *host, Node *step) {
  fill_optional_inputs(graph, host);
  for (int i = 1; i < step->n_inputs; i++) *LIST_APPEND(graph->arena, host->inputs, host->n_inputs) = step->inputs[i];
  *LIST_APPEND(graph->arena, host->epilogue, host->n_epilogue) = step;
  step->inputs[0]->producer = NULL;
  graph_set_output(host, 0, step->outputs[0]);
}

/* needs: infer_shapes, dense ids; before alias_views. keeps: types and shapes of what remains. A host moves to
 * the place of its last epilogue node, after all that it reads. */
void fuse_epilogue(Graph *graph) {
  UseList uses = graph_uses(graph);
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *step = graph->nodes[n];
    Node *host = find_host(&uses, step);
    if (!host) continue;
    fuse(graph, host, step);
    graph->nodes[host->id] = NULL;
    graph->nodes[n] = host;
    host->id = n;
  }
  graph_close_gaps(graph);
}
