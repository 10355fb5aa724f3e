/* SPDX-License-Identifier: MIT */
/* A kernel need not run if all outputs of its node are empty, or if another one runs the node in its place. */
#include "ir/op.h"
#include "passes.h"
#include "program/program.h"

/* ---- data-dependent dims ---- */

/* Does the node's own kernel find the extent? */
static bool node_finds(const Call *of, const Dim *extent) {
  const Program *program = of->program;
  for (int i = 0; i < program->n_calls && !dim_is_given(extent); i++)
    if (program->calls[i]->item->node == of->item->node && call_finds(program->calls[i], extent)) return true;
  return false;
}

/* ---- conditions ---- */

/* Call.when, and the extents that may be 0. None of these if the value is never empty, or if the call itself finds the
 * extent. */
static Extents doubtful_extents(const Call *call, const Value *value) {
  Extents extents = {.list = ARENA_ARRAY(call->program->arena, const Dim *, value->rank + 1)};
  if (call->when) extents.list[extents.count++] = call->when;
  for (int axis = 0; axis < value->rank; axis++)
    if (dim_lower(value->shape[axis]) <= 0 && !node_finds(call, value->shape[axis]))
      extents.list[extents.count++] = value->shape[axis];
  return extents;
}

/* Before a loop, the extents of its body's nodes are not known, and those of the first iteration may be 0 alone. */
static void set_guard(Call *call) {
  const Node *node = call->item->node;
  if (call->before_loop) return;
  if (node->control || is_op(node, OP_ExpectExtent)) return; /* it checks extents of 0, too */
  Extents *guard = ARENA_ARRAY(call->program->arena, Extents, node->n_outputs + 1);
  int count = 0;
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    guard[count] = doubtful_extents(call, node->outputs[i]);
    if (!guard[count++].count) return;
  }
  call->guard = guard;
  call->n_guard = count;
}

/* needs: lower. keeps: everything. Sets the guard of each call: what it waits for, and the extents of the node's
 * outputs that may be 0. */
void skip_empty(Program *program) {
  for (int i = 0; i < program->n_calls; i++) set_guard(program->calls[i]);
}
