/* SPDX-License-Identifier: MIT */
#include "kernels/conv/padded_input.h"

#include "program/build.h"
#include "template/specialise.h"

static bool unpadded(const ConvAxis *axis) { return dim_equals(axis->pad_begin, 0) && dim_equals(axis->pad_end, 0); }

static void flatten_pointwise(DimTable *dims, PaddedInput *in) {
  if (!axis_is_pointwise(&in->d) || !axis_is_pointwise(&in->h) || !axis_is_pointwise(&in->w)) return;
  const Dim *one = dim_const(dims, 1), *zero = dim_const(dims, 0);
  in->w.in = in->w.out = dim_mul(dims, in->d.in, dim_mul(dims, in->h.in, in->w.in));
  in->d = in->h = (ConvAxis){1, 1, 1, one, one, zero, zero};
}

PaddedInput padded_input_of(Graph *graph, const Convolution *conv) {
  PaddedInput in = {.d = conv->d, .h = conv->h, .w = conv->w};
  flatten_pointwise(graph->dims, &in);
  in.dense = in.w.stride == 1 && unpadded(&in.d) && unpadded(&in.h) && unpadded(&in.w);
  return in;
}

int64_t padded_input_phases(const ConvAxis *axis) {
  int64_t last = 0;
  for (int64_t r = 0; r < axis->kernel && r < axis->stride; r++) {
    int64_t place = r * axis->dilation % axis->stride;
    if (place > last) last = place;
  }
  return last + 1;
}

/* Rows or columns of a phase that `outputs` outputs read. */
static const Dim *phase_length(DimTable *dims, const ConvAxis *axis, const Dim *outputs) {
  return dim_add(dims, outputs, dim_const(dims, (axis->kernel - 1) * axis->dilation / axis->stride));
}

void padded_input_size(Graph *graph, PaddedInput *in, const Dim *covered) {
  DimTable *dims = graph->dims;
  in->planes = dim_add(dims, in->d.in, dim_add(dims, in->d.pad_begin, in->d.pad_end));
  in->rows = phase_length(dims, &in->h, in->h.out);
  in->columns = phase_length(dims, &in->w, covered);
}

const Dim *padded_input_floats(Graph *graph, const PaddedInput *in, const Value *x) {
  DimTable *dims = graph->dims;
  int64_t phases = padded_input_phases(&in->h) * padded_input_phases(&in->w);
  const Dim *plane = dim_mul(dims, dim_const(dims, phases), dim_mul(dims, in->rows, in->columns));
  return dim_mul(dims, value_count_dim(graph, x, 0, 2), dim_mul(dims, in->planes, plane));
}

KernelSpec *padded_input_spec(const Graph *graph, const PaddedInput *in) {
  if (in->dense) return NULL;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_pad");
  kernel_knob(spec, "STRIDE_H", in->h.stride);
  kernel_knob(spec, "STRIDE_W", in->w.stride);
  kernel_knob(spec, "PHASES_H", padded_input_phases(&in->h));
  kernel_knob(spec, "PHASES_W", padded_input_phases(&in->w));
  return spec;
}

void lower_padded_input(Program *program, const Node *node, const PaddedInput *in, const Value *x, const Value *to,
                        const Dim *bytes) {
  Graph *graph = program->graph;
  if (in->dense) return;
  Call *call = kernel_call(program, node, padded_input_spec(graph, in));
  operand_value(call, "x", x, READ);
  operand_part(call, "out", to, dim_const(graph->dims, 0), bytes, WRITE);
  operand_dim(call, "volumes", value_count_dim(graph, x, 0, 2));
  operand_dim(call, "depth", in->d.in);
  operand_dim(call, "height", in->h.in);
  operand_dim(call, "width", in->w.in);
  operand_dim(call, "planes", in->planes);
  operand_dim(call, "rows", in->rows);
  operand_dim(call, "columns", in->columns);
  operand_dim(call, "front", in->d.pad_begin);
  operand_dim(call, "top", in->h.pad_begin);
  operand_dim(call, "left", in->w.pad_begin);
  call_bytes_of(call, 4, x);
  call_bytes(call, 1, EXTENTS(to->shape[0]));
}

/* Strides of the tensor, or of the copy. */
void operands_padded_input(Program *program, Call *call, const PaddedInput *in, const Value *x, const Value *copy,
                           const Dim *bytes) {
  DimTable *dims = program->graph->dims;
  const Dim *row, *plane, *planes, *phase_h, *phase_w;
  if (in->dense) {
    row = dim_mul(dims, in->w.in, dim_const(dims, in->h.stride));
    phase_w = dim_const(dims, 0);
    phase_h = in->w.in;
    plane = dim_mul(dims, in->w.in, in->h.in);
    planes = in->d.in;
  } else {
    row = in->columns;
    phase_w = dim_mul(dims, in->rows, in->columns);
    phase_h = dim_mul(dims, phase_w, dim_const(dims, padded_input_phases(&in->w)));
    plane = dim_mul(dims, phase_h, dim_const(dims, padded_input_phases(&in->h)));
    planes = in->planes;
  }
  if (in->dense)
    operand_value(call, "x", x, READ);
  else
    operand_part(call, "x", copy, dim_const(dims, 0), bytes, READ);
  operand_dim(call, "x_channel", dim_mul(dims, plane, planes));
  operand_dim(call, "x_plane", plane);
  operand_dim(call, "x_row", row);
  operand_dim(call, "x_phase_h", phase_h);
  operand_dim(call, "x_phase_w", phase_w);
}
