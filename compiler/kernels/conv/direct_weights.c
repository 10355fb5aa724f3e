/* SPDX-License-Identifier: MIT */
#include "kernels/conv/direct_weights.h"

#include "support/numbers.h"

static int64_t vectors_of(const DirectWeights *d) { return ceil_div(d->kernels, d->lanes); }

int64_t direct_oc_groups(const DirectWeights *d) { return ceil_div(vectors_of(d), d->oc_vectors); }

/* The first input channel of its group. */
static int64_t first_channel(const DirectWeights *d, int64_t kernel) {
  return kernel / d->group_kernels * d->group_channels;
}

static int64_t first_block(const DirectWeights *d, int64_t oc_group) {
  return first_channel(d, oc_group * d->oc_vectors * d->lanes) / d->in_block;
}

static int64_t end_block(const DirectWeights *d, int64_t oc_group) {
  int64_t last = min_int((oc_group + 1) * d->oc_vectors * d->lanes, d->kernels) - 1;
  return (first_channel(d, last) + d->group_channels + d->in_block - 1) / d->in_block;
}

int64_t direct_span(const DirectWeights *d) {
  int64_t span = 0;
  for (int64_t g = 0; g < direct_oc_groups(d); g++) {
    int64_t blocks = end_block(d, g) - first_block(d, g);
    if (blocks > span) span = blocks;
  }
  return span;
}

/* Floats of an oc group's weights for one lane of output channels. */
static int64_t group_depth(const DirectWeights *d) { return direct_span(d) * d->window * d->in_block; }

int64_t direct_floats(const DirectWeights *d) { return vectors_of(d) * d->lanes * group_depth(d); }

/* One output channel's weights; `vectors` are in its oc group. */
static void pack_kernel(const DirectWeights *d, int64_t kernel, int64_t vectors, const float *source, float *packed) {
  int64_t first = first_channel(d, kernel), base = first_block(d, kernel / d->lanes / d->oc_vectors) * d->in_block;
  for (int64_t i = 0; i < d->group_channels; i++) {
    int64_t channel = first + i - base, block = channel / d->in_block, lane = channel % d->in_block;
    for (int64_t tap = 0; tap < d->window; tap++)
      packed[((block * d->window + tap) * d->in_block + lane) * vectors * d->lanes] = source[i * d->window + tap];
  }
}

void direct_pack(const DirectWeights *d, const float *source, float *packed) {
  int64_t depth = group_depth(d), all = vectors_of(d);
  for (int64_t kernel = 0; kernel < d->kernels; kernel++) {
    int64_t vector = kernel / d->lanes, of_group = vector / d->oc_vectors * d->oc_vectors;
    int64_t vectors = min_int(d->oc_vectors, all - of_group);
    float *group = packed + of_group * d->lanes * depth;
    pack_kernel(d, kernel, vectors, source + kernel * d->group_channels * d->window,
                group + (vector - of_group) * d->lanes + kernel % d->lanes);
  }
}
