/* SPDX-License-Identifier: MIT */
/*
 * Packed weights of conv_direct: [oc group][span][R S][channel of the block][vector of the oc group][lane]. An oc group
 * has some vectors of output channels, the last one maybe fewer; span is the most blocks of input channels that an oc
 * group reads. Weights of padded channels, and of other groups of the convolution, are zero.
 */
#ifndef RNNCC_DIRECT_WEIGHTS_H
#define RNNCC_DIRECT_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct DirectWeights {
  int lanes, in_block; /* channels of a block of the output, of the input */
  int oc_vectors;
  int64_t window;                        /* R * S */
  int64_t kernels;                       /* of all groups */
  int64_t group_channels, group_kernels; /* of a group of the convolution */
  bool by_two;                           /* span is even, and two blocks of STEP_CHANNELS are packed together */
} DirectWeights;

int64_t direct_oc_groups(const DirectWeights *weights);
int64_t direct_span(const DirectWeights *weights);
int64_t direct_floats(const DirectWeights *weights);
/* source: [kernels][group_channels][R][S], as in ONNX. packed: direct_floats() of them, zero. */
void direct_pack(const DirectWeights *weights, const float *source, float *packed);
/* The same for conv_direct_int8, whose steps are of STEP_CHANNELS: [oc group][span][R S][step][vector of the oc
 * group][lane][channel of the step]; by_two: [oc group][two blocks][R S][vector of the oc group][lane][channel of the
 * two blocks]. */
void direct_pack_bytes(const DirectWeights *weights, const int8_t *source, int8_t *packed);

#endif
