/* SPDX-License-Identifier: MIT */
/* What a call costs, as terms of the run's extents: the profile is of any run, not of the dims' optimum alone. */
#include "program/build.h"
#include "support/list.h"

/* Constant extents become part of the number. Returns the term at the dims' optimum. */
static double add_term(Call *call, Cost *cost, double each, const Dim *const *extents, int n) {
  Arena *arena = call->program->arena;
  CostTerm term = {.each = each, .extents = ARENA_ARRAY(arena, const Dim *, n + 1)};
  double optimum = each;
  for (int i = 0; i < n; i++) {
    optimum *= (double)dim_optimum(extents[i]);
    if (dim_is_const(extents[i]))
      term.each *= (double)dim_value(extents[i]);
    else
      term.extents[term.n++] = extents[i];
  }
  *LIST_ADD(arena, cost->terms, cost->count, cost->capacity) = term;
  return optimum;
}

static int length(const Dim *const *extents) {
  int n = 0;
  while (extents[n]) n++;
  return n;
}

void call_flops(Call *call, double each, const Dim *const *extents) {
  call->flops += add_term(call, &call->flops_terms, each, extents, length(extents));
}

void call_bytes(Call *call, double each, const Dim *const *extents) {
  call->bytes += add_term(call, &call->bytes_terms, each, extents, length(extents));
}

void call_flops_of(Call *call, double each, const Value *value) {
  call->flops += add_term(call, &call->flops_terms, each, value->shape, value->rank);
}

void call_bytes_of(Call *call, double each, const Value *value) {
  call->bytes += add_term(call, &call->bytes_terms, each, value->shape, value->rank);
}

void call_touches(Call *call, const Value *value) {
  if (value) call_bytes_of(call, (double)dtype_size(value->dtype), value);
}

void call_products(Call *call, DType dtype) { call->products = dtype; }

void call_in_parts(Call *call, int parts) {
  for (int i = 0; i < call->flops_terms.count; i++) call->flops_terms.terms[i].each *= parts;
  call->flops *= parts;
}
