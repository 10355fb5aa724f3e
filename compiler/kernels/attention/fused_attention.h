/* SPDX-License-Identifier: MIT */
/* softmax(scale Q K' + mask) V as one node, made by fuse_attention. */
#ifndef RNNCC_FUSED_ATTENTION_H
#define RNNCC_FUSED_ATTENTION_H

#include "ir/op.h"

/* Not in ops.def: models cannot name it. Inputs: what holds Q, K and V, and the mask, if there is one. */
extern const OpInfo op_fused_attention;

/* One matrix for each batch inside of a value. Strides in elements; a batch stride of 0 repeats the matrix. */
typedef struct AttentionOperand {
  const Dim *offset, *row, *column, *batch[MAX_RANK];
} AttentionOperand;

typedef struct FusedAttention {
  int batch_rank;
  const Dim *batch[MAX_RANK];
  const Dim *queries, *keys, *depth, *width; /* Q is [queries, depth], K [keys, depth], V [keys, width] */
  double scale;
  bool blind_zero;                   /* a query whose weights are not numbers gets 0, not NaN */
  AttentionOperand q, k, v, mask, y; /* y: its columns stand side by side */
  bool banded;                       /* query i sees keys i % period + low .. i % period + high alone */
  const Dim *low, *high, *period;
  double seen; /* share of the keys */
} FusedAttention;

#endif
