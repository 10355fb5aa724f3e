/* SPDX-License-Identifier: MIT */
#include "kernels/index/index_check.h"

#include "program/build.h"
#include "shapes/shape.h"

bool constants_in_range(const Value *indices, int64_t first, int64_t step, const Dim *length) {
  IntRange range;
  if (!constant_range(indices, first, step, &range)) return false;
  return range.least >= -dim_lower(length) && range.most < dim_lower(length);
}

/* The length must be constant: a range check before the run has a constant lower bound. */
bool indices_checked(Program *program, const Value *indices, const Dim *length) {
  if (constants_in_range(indices, 0, 1, length)) return true;
  if (!dim_is_const(length)) return false;
  return program_check_range(program, indices, -dim_value(length), dim_value(length), NULL, "index");
}
