/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_EXTENTS_H
#define RNNRUN_EXTENTS_H

#include "rnncc.h"

/* The extent of a dim in these inputs; its optimum where none has it. */
static inline int64_t extent_of(const rnncc_info *info, const rnncc_tensor *inputs, int dim) {
  for (int i = 0; i < info->n_inputs; i++) {
    const rnncc_tensor_info *described = rnncc_input_at(info, i);
    for (int axis = 0; axis < described->rank; axis++)
      if (described->dim[axis] == dim) return inputs[i].shape[axis];
  }
  return rnncc_dim_at(info, dim)->opt;
}

#endif
