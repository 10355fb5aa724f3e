/* SPDX-License-Identifier: MIT */
/* Shared by the shapes and the formulas of ONNX Runtime's operators. */
#ifndef RNNCC_FUSED_H
#define RNNCC_FUSED_H

#include <stdbool.h>
#include <stdint.h>

/* The axes of an operand of FusedMatMul in the order of MatMul's; rank is at least 2. */
void fused_perm(int rank, bool turned, bool batch, int64_t *perm);

#endif
