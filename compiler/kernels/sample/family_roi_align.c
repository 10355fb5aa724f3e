/* SPDX-License-Identifier: MIT */
/* RoiAlign. Image indices of a graph input are checked before the run, others by the kernel. */
#include "ir/family.h"
#include "program/build.h"

static void lower_roi_align(Program *program, Node *node) {
  const Value *x = node->inputs[0], *images = node->inputs[2], *y = node->outputs[0];
  KernelSpec *spec = kernel_spec(program, "roi_align");
  kernel_knob(spec, "LARGEST", node_word(node, ATTR_mode) == ROI_MODE_max);
  kernel_knob(spec, "SAMPLES", node_int(node, ATTR_sampling_ratio));
  kernel_knob(spec, "HALF_PIXEL", node_word(node, ATTR_coordinate_transformation_mode) == ROI_half_pixel);
  Call *call = kernel_call(program, node, spec);
  if (dim_is_const(x->shape[0]) && program_check_range(program, images, 0, dim_value(x->shape[0]), NULL, "image"))
    operand_null(call, "fault");
  operand_value(call, "x", x, READ);
  operand_value(call, "rois", node->inputs[1], READ);
  operand_value(call, "images", images, READ);
  operand_value(call, "y", y, WRITE);
  operand_float(call, "scale", node_float(node, ATTR_spatial_scale));
  operand_dim(call, "n", x->shape[0]);
  operand_dim(call, "channels", x->shape[1]);
  operand_dim(call, "height", x->shape[2]);
  operand_dim(call, "width", x->shape[3]);
  operand_dim(call, "regions", y->shape[0]);
  operand_dim(call, "out_h", y->shape[2]);
  operand_dim(call, "out_w", y->shape[3]);
  int64_t samples = node_int(node, ATTR_sampling_ratio) ? node_int(node, ATTR_sampling_ratio) : 2;
  call_flops_of(call, 8 * (double)(samples * samples), y);
  call_bytes_of(call, 16 * (double)(samples * samples), y);
}

const KernelFamily family_roi_align = {.lower = lower_roi_align};
