/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/kernels.h"

#include "kernels/gemm/narrow_panels.h"
#include "kernels/recurrent/int8.h"
#include "program/build.h"
#include "template/specialise.h"

KernelSpec *input_spec(Arena *arena, const Layer *l, int product) {
  KernelSpec *spec = l->input_in_matrices ? gemm_bf16_spec(arena, &l->gemm) : gemm_spec(arena, &l->gemm);
  if (l->products > 1) {
    kernel_knob(spec, "CREWS", l->products);
    kernel_knob(spec, "CREW", product);
  }
  kernel_knob(spec, "ADDEND", l->matrices[MATRIX_BIAS].source != NULL);
  if (!l->input_in_matrices) weights_knobs(spec, layer_narrow(l, MATRIX_INPUT));
  return spec;
}

/* In a body, $a and $b are alpha and beta. NaN gives NaN as in ONNX Runtime: except in ThresholdedRelu. */
static const char *const bodies[] = {
    [ACTIVATION_Affine] = "return vfma($b, $a, x);",
    [ACTIVATION_Elu] = "return vselect(vlt(x, vzero()), vmul($a, vexpm1(x)), x);",
    [ACTIVATION_HardSigmoid] = "return vmax_bound(vmin_bound(vfma($b, $a, x), vset(1)), vzero());",
    [ACTIVATION_LeakyRelu] = "return vselect(vlt(x, vzero()), vmul($a, x), x);",
    [ACTIVATION_Relu] = "return vmax_bound(x, vzero());",
    [ACTIVATION_ScaledTanh] = "return vmul($a, vtanh(vmul($b, x)));",
    [ACTIVATION_Sigmoid] = "return vsigmoid(x);",
    [ACTIVATION_Softplus] = "return vsoftplus(x);",
    [ACTIVATION_Softsign] = "return vdiv(x, vadd(vset(1), vabs(x)));",
    [ACTIVATION_Tanh] = "return vtanh(x);",
    [ACTIVATION_ThresholdedRelu] = "return vselect(vgt(x, $a), x, vzero());",
};

/* Their derivatives, by their value y. */
static const char *const slopes[] = {
    [ACTIVATION_Affine] = "return (void)y, $a;",
    [ACTIVATION_Elu] = "return vselect(vgt(y, vzero()), vset(1), vadd(y, $a));",
    [ACTIVATION_HardSigmoid] = "return vselect(vgt(y, vzero()), vselect(vlt(y, vset(1)), $a, vzero()), vzero());",
    [ACTIVATION_LeakyRelu] = "return vselect(vgt(y, vzero()), vset(1), $a);",
    [ACTIVATION_Relu] = "return vselect(vgt(y, vzero()), vset(1), vzero());",
    [ACTIVATION_ScaledTanh] = "return vmul($b, vsub($a, vdiv(vmul(y, y), $a)));",
    [ACTIVATION_Sigmoid] = "return vfnma(y, y, y);",
    [ACTIVATION_Softplus] = "return vsub(vzero(), vexpm1(vsub(vzero(), y)));",
    [ACTIVATION_Softsign] = "vec rest = vsub(vset(1), vabs(y));\n  return vmul(rest, rest);",
    [ACTIVATION_Tanh] = "return vfnma(vset(1), y, y);",
    [ACTIVATION_ThresholdedRelu] = "return vselect(vgt(vabs(y), vzero()), vset(1), vzero());",
};

static const char *with_parameters(Arena *arena, const char *body, const Activation *activation) {
  Text text = text_new(arena);
  for (const char *at = body; *at; at++) {
    if (*at != '$') {
      text_bytes(&text, at, 1);
      continue;
    }
    at++;
    text_add(&text, "vset(");
    text_float(&text, *at == 'a' ? activation->alpha : activation->beta);
    text_add(&text, ")");
  }
  return text.data;
}

const char *activation_body(Arena *arena, const Activation *activation) {
  return with_parameters(arena, bodies[activation->kind], activation);
}

const char *slope_body(Arena *arena, const Activation *activation) {
  return with_parameters(arena, slopes[activation->kind], activation);
}

/* What the templates of f32, of integers and of bf16 have in common. */
static KernelSpec *cells_spec(Arena *arena, const char *template_name, const Layer *l, int direction) {
  static const char *const hooks[MAX_ACTIVATIONS] = {"activation_f", "activation_g", "activation_h"};
  KernelSpec *spec = kernel_spec_new(arena, template_name);
  kernel_knob(spec, "CELL", l->cell);
  kernel_knob(spec, "UNIT_VECTORS", l->unit_vectors);
  kernel_knob(spec, "ROWS", l->rows.most);
  kernel_knob(spec, "MIN_ROWS", l->rows.least);
  kernel_knob(spec, "WORKERS", l->variant.workers);
  kernel_knob(spec, "BATCH_PARTS", l->variant.batch_parts);
  kernel_knob(spec, "CLIP", l->clip > 0);
  kernel_knob(spec, "INPUT_FORGET", l->input_forget);
  kernel_knob(spec, "PEEPHOLES", l->matrices[MATRIX_PEEPHOLES].source != NULL);
  if (l->lengths) kernel_type(spec, "Length", l->lengths->dtype);
  const Activation *activations = &l->activations[direction * l->n_activations];
  for (int i = 0; i < l->n_activations; i++) kernel_hook(spec, hooks[i], activation_body(arena, &activations[i]));
  return spec;
}

static KernelSpec *int8_steps_spec(Arena *arena, const Layer *l, int direction) {
  bool matrices = l->hidden_form == IN_MATRICES;
  KernelSpec *spec = cells_spec(arena, matrices ? "recurrent_int8_matrices" : "recurrent_int8", l, direction);
  if (!matrices) {
    kernel_knob(spec, "PARTS", l->parts);
    kernel_knob(spec, "FORM", l->hidden_form);
  }
  kernel_knob(spec, "FIXED", l->fixed_ranges);
  return spec;
}

static KernelSpec *bf16_steps_spec(Arena *arena, const Layer *l, int direction) {
  KernelSpec *spec = cells_spec(arena, "recurrent_bf16", l, direction);
  kernel_knob(spec, "ROW_PARTS", l->row_parts);
  return spec;
}

KernelSpec *steps_spec(Arena *arena, const Layer *l, int direction) {
  if (l->int8) return int8_steps_spec(arena, l, direction);
  if (l->hidden_in_matrices) return bf16_steps_spec(arena, l, direction);
  KernelSpec *spec = cells_spec(arena, "recurrent_steps", l, direction);
  kernel_knob(spec, "PARTS", l->parts);
  kernel_knob(spec, "PANEL_PARTS", l->panel_parts);
  kernel_knob(spec, "HIDE", l->variant.hide);
  kernel_knob(spec, "HALVES", l->halves);
  kernel_knob(spec, "DEPTH_BLOCK", l->variant.depth_block);
  kernel_knob(spec, "INPUT", l->variant.input == INPUT_WITH_STEP);
  kernel_knob(spec, "CELLS_FIRST", l->cells_first);
  weights_knobs(spec, layer_narrow(l, MATRIX_HIDDEN));
  return spec;
}

KernelSpec *int8_input_spec(Arena *arena, const Layer *l) {
  bool matrices = l->input_form == IN_MATRICES;
  KernelSpec *spec = kernel_spec_new(arena, matrices ? "recurrent_int8_input_matrices" : "recurrent_int8_input");
  kernel_knob(spec, "VECTORS", l->gemm.vectors);
  if (!matrices) {
    kernel_knob(spec, "ROWS", l->gemm.rows.most);
    kernel_knob(spec, "MIN_ROWS", l->gemm.rows.least);
    kernel_knob(spec, "PARTS", l->parts);
    kernel_knob(spec, "FORM", l->input_form);
  }
  kernel_knob(spec, "FIXED", l->fixed_ranges);
  return spec;
}

int layer_kernels(Arena *arena, const Layer *l, KernelSpec **kernels) {
  int count = 0;
  if (l->int8) kernels[count++] = int8_input_spec(arena, l);
  for (int product = 0; !l->int8 && l->variant.input == INPUT_AHEAD && product < l->products; product++)
    kernels[count++] = input_spec(arena, l, product);
  for (int direction = 0; direction < l->directions; direction++) kernels[count++] = steps_spec(arena, l, direction);
  return count;
}
