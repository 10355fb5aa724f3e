/* SPDX-License-Identifier: MIT */
#include "program/build.h"

#include "program/build_internal.h"
#include "support/list.h"

/* ---- values ---- */

void program_add_value(Program *program, Value *value) {
  int n_homes = value->id = program->n_values;
  *LIST_ADD(program->arena, program->values, program->n_values, program->value_capacity) = value;
  *LIST_ADD(program->arena, program->homes, n_homes, program->home_capacity) = program->block;
}

Value *program_view(Program *program, const Value *like, Value *of, const Dim *at) {
  Value *view = ARENA_NEW(program->arena, Value);
  *view = (Value){.name = like->name, .dtype = like->dtype, .rank = like->rank, .shape = like->shape};
  view->view_of = of;
  view->at = at;
  program_add_value(program, view);
  return view;
}

Value *program_constant(Program *program, DType dtype, const void *data) {
  Value *value = ARENA_NEW(program->arena, Value);
  *value = (Value){.name = "constant", .dtype = dtype, .data = data};
  program_add_value(program, value);
  return value;
}

Value *program_floats(Program *program, const char *name, const Dim *count) {
  Value *value = ARENA_NEW(program->arena, Value);
  *value = (Value){.name = name, .dtype = RNNCC_F32, .rank = 1, .shape = ARENA_ARRAY(program->arena, const Dim *, 1)};
  value->shape[0] = count;
  program_add_value(program, value);
  return value;
}

const Block *home_of(const Program *program, const Value *root) { return program->homes[root->id]; }

/* A body's ids become unique in the module. */
void program_take(Program *program, Graph *graph) {
  for (int i = 0; i < graph->n_values; i++) program_add_value(program, graph->values[i]);
  for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i]->id = program->n_nodes++;
}

/* ---- calls ---- */

Call *program_call(Program *program, const Node *node, const SpecialisedKernel *kernel) {
  Call *call = ARENA_NEW(program->arena, Call);
  call->program = program;
  call->row = program->n_calls;
  call->kernel = kernel;
  call->operands = ARENA_ARRAY(program->arena, Operand, kernel->n_parameters + 1);
  call->wavefront = program->block->owner ? program->block->owner->wavefront : NULL;
  call->layer = program->layer;
  call->item = item_new(program->arena, ITEM_CALL, node);
  call->item->call = call;
  block_add(program->arena, program->block, call->item);
  *LIST_ADD(program->arena, program->calls, program->n_calls, program->call_capacity) = call;
  return call;
}

Call *kernel_call(Program *program, const Node *node, KernelSpec *spec) {
  return program_call(program, node, program_kernel(program, node, spec));
}

/* ---- range checks ---- */

bool program_check_range(Program *program, const Value *value, int64_t lo, int64_t hi, const Dim *hi_dim,
                         const char *what) {
  const Value *root = value_root((Value *)value);
  if (!root->is_input || root->data || program->block != program->schedule) return false;
  for (int i = 0; i < program->graph->n_states; i++)
    if (program->graph->states[i].input == root) return false;
  if (hi_dim && (!dim_is_given(hi_dim) || (!dim_is_const(hi_dim) && !dim_as_symbol(hi_dim)))) return false;
  if (hi_dim && dim_is_const(hi_dim)) {
    hi += dim_value(hi_dim);
    hi_dim = NULL;
  }
  *LIST_ADD(program->arena, program->checks, program->n_checks, program->check_capacity) =
      (RangeCheck){root, lo, hi, hi_dim, what};
  return true;
}
