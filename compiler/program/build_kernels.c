/* SPDX-License-Identifier: MIT */
/* Templates with their knobs set, and the kernels made of them: equal specifications share a kernel. */
#include <string.h>

#include "program/build.h"
#include "program/build_internal.h"
#include "support/diagnostics.h"
#include "support/list.h"

KernelSpec *kernel_spec(Program *program, const char *template_name) {
  return kernel_spec_new(program->arena, template_name);
}

void kernel_knob(KernelSpec *spec, const char *name, int64_t value) {
  if (spec->n_knobs == MAX_KNOBS) bug("%s: more than %d knobs", spec->template_name, MAX_KNOBS);
  spec->knobs[spec->n_knobs++] = (Knob){name, value};
}

void kernel_knob_at_run_time(KernelSpec *spec, const char *name) {
  if (spec->n_run_time == MAX_RUN_TIME_KNOBS)
    bug("%s: more than %d knobs at run time", spec->template_name, MAX_RUN_TIME_KNOBS);
  spec->run_time[spec->n_run_time++] = name;
}

void kernel_type(KernelSpec *spec, const char *name, DType dtype) {
  if (spec->n_types == MAX_TYPE_KNOBS) bug("%s: more than %d types", spec->template_name, MAX_TYPE_KNOBS);
  spec->types[spec->n_types++] = (TypeKnob){name, dtype_c(dtype)};
}

void kernel_bits(KernelSpec *spec, const char *name, DType dtype) {
  static const char *const BITS[] = {[1] = "bits8", [2] = "bits16", [4] = "bits32", [8] = "bits64"};
  if (spec->n_types == MAX_TYPE_KNOBS) bug("%s: more than %d types", spec->template_name, MAX_TYPE_KNOBS);
  spec->types[spec->n_types++] = (TypeKnob){name, BITS[dtype_size(dtype)]};
}

void kernel_hook(KernelSpec *spec, const char *function, const char *body) {
  if (!body) return;
  if (spec->n_hooks == MAX_HOOKS) bug("%s: more than %d hooks", spec->template_name, MAX_HOOKS);
  spec->hooks[spec->n_hooks++] = (Hook){function, arena_string(spec->arena, body)};
}

const SpecialisedKernel *program_kernel(Program *program, const Node *node, const KernelSpec *spec) {
  const char *key = kernel_key(program->arena, spec);
  int n = program->n_kernels;
  for (int i = 0; i < n; i++)
    if (!strcmp(program->kernels[i].key, key)) return program->kernels[i].kernel;
  const SpecialisedKernel *kernel = specialise(program->graph, spec, arena_format(program->arena, "k%d", n));
  *LIST_ADD(program->arena, program->kernels, program->n_kernels, program->kernel_capacity) =
      (ProgramKernel){key, node, kernel};
  return kernel;
}
