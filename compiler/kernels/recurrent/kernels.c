/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/kernels.h"

#include "program/build.h"
#include "template/specialise.h"

KernelSpec *input_spec(Arena *arena, const Layer *l) {
  KernelSpec *spec = gemm_spec(arena, &l->gemm);
  kernel_knob(spec, "ADDEND", l->matrices[MATRIX_BIAS].source != NULL);
  return spec;
}

KernelSpec *steps_spec(Arena *arena, const Layer *l, int direction) {
  static const char *const hooks[MAX_ACTIVATIONS] = {"activation_f", "activation_g", "activation_h"};
  KernelSpec *spec = kernel_spec_new(arena, "recurrent_steps");
  kernel_knob(spec, "CELL", l->cell);
  kernel_knob(spec, "UNIT_VECTORS", l->unit_vectors);
  kernel_knob(spec, "ROWS", l->rows.most);
  kernel_knob(spec, "MIN_ROWS", l->rows.least);
  kernel_knob(spec, "PARTS", l->parts);
  kernel_knob(spec, "WORKERS", l->variant.workers);
  kernel_knob(spec, "BATCH_PARTS", l->variant.batch_parts);
  kernel_knob(spec, "HIDE", l->variant.hide);
  kernel_knob(spec, "HALVES", l->halves);
  kernel_knob(spec, "DEPTH_BLOCK", l->variant.depth_block);
  kernel_knob(spec, "INPUT", l->variant.input == INPUT_WITH_STEP);
  kernel_knob(spec, "CLIP", l->clip > 0);
  kernel_knob(spec, "INPUT_FORGET", l->input_forget);
  kernel_knob(spec, "PEEPHOLES", l->matrices[MATRIX_PEEPHOLES].source != NULL);
  if (l->lengths) kernel_type(spec, "Length", l->lengths->dtype);
  for (int i = 0; i < MAX_ACTIVATIONS && l->activations.body[direction][i]; i++)
    kernel_hook(spec, hooks[i], l->activations.body[direction][i]);
  return spec;
}

int layer_kernels(Arena *arena, const Layer *l, KernelSpec **kernels) {
  int count = 0;
  if (l->variant.input == INPUT_AHEAD) kernels[count++] = input_spec(arena, l);
  for (int direction = 0; direction < l->directions; direction++) kernels[count++] = steps_spec(arena, l, direction);
  return count;
}
