/* SPDX-License-Identifier: MIT */
#include "reference/kernels.h"

/* A body is no kernel's to run. */
const char *ref_control(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node, (void)inputs, (void)outputs;
  return "control flow has no reference kernel";
}
