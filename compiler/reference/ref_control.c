/* SPDX-License-Identifier: MIT */
#include "reference/kernels.h"

/* Kernels cannot run bodies. */
const char *ref_control(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node, (void)inputs, (void)outputs;
  return "control flow has no reference kernel";
}
