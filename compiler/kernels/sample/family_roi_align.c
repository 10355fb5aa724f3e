/* SPDX-License-Identifier: MIT */
/* RoiAlign. Which image a region is of is checked before the run where the caller says so, else by the kernel. */
#include <string.h>

#include "ir/family.h"
#include "program/emitter.h"

static void emit_roi_align(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *images = node->inputs[2], *y = node->outputs[0];
  KernelSpec *spec = kernel_spec(emitter, "roi_align");
  kernel_knob(spec, "LARGEST", !strcmp(node_string(node, "mode"), "max"));
  kernel_knob(spec, "SAMPLES", node_int(node, "sampling_ratio"));
  kernel_knob(spec, "HALF_PIXEL", !strcmp(node_string(node, "coordinate_transformation_mode"), "half_pixel"));
  KernelCall *call = kernel_call(emitter, node, spec);
  if (dim_is_const(x->shape[0]) && emitter_check_range(emitter, images, 0, dim_value(x->shape[0]), NULL, "image"))
    call_argument(call, "fault", "NULL");
  call_value(call, "x", x);
  call_value(call, "rois", node->inputs[1]);
  call_value(call, "images", images);
  call_value(call, "y", y);
  call_float(call, "scale", node_float(node, "spatial_scale"));
  call_dim(call, "n", x->shape[0]);
  call_dim(call, "channels", x->shape[1]);
  call_dim(call, "height", x->shape[2]);
  call_dim(call, "width", x->shape[3]);
  call_dim(call, "regions", y->shape[0]);
  call_dim(call, "out_h", y->shape[2]);
  call_dim(call, "out_w", y->shape[3]);
  int64_t samples = node_int(node, "sampling_ratio") ? node_int(node, "sampling_ratio") : 2;
  double points = (double)dim_optimum(value_count_dim(graph, y, 0, 4)) * (double)(samples * samples);
  call_cost(call, 8 * points, 16 * points);
}

const KernelFamily family_roi_align = {.name = "roi_align", .emit = emit_roi_align};
