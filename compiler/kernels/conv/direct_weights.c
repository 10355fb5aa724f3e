/* SPDX-License-Identifier: MIT */
#include "kernels/conv/direct_weights.h"

#include "layout/blocked.h"
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
  return d->by_two ? round_up(span, 2) : span;
}

/* Floats of an oc group's weights for one lane of output channels. */
static int64_t group_depth(const DirectWeights *d) { return direct_span(d) * d->window * d->in_block; }

int64_t direct_floats(const DirectWeights *d) { return vectors_of(d) * d->lanes * group_depth(d); }

/* Where an output channel's weights are: [row][column] of an oc group, a row being a channel of a tap. */
typedef struct Column {
  int64_t group, columns, column; /* the first weight of the oc group, and its columns */
  int64_t first;                  /* input channel, from the oc group's first block */
} Column;

static Column column_of(const DirectWeights *d, int64_t kernel, int64_t depth) {
  int64_t vector = kernel / d->lanes, oc_group = vector / d->oc_vectors, of_group = oc_group * d->oc_vectors;
  int64_t vectors = min_int(d->oc_vectors, vectors_of(d) - of_group);
  return (Column){.group = of_group * d->lanes * depth,
                  .columns = vectors * d->lanes,
                  .column = kernel - of_group * d->lanes,
                  .first = first_channel(d, kernel) - first_block(d, oc_group) * d->in_block};
}

static int64_t row_of(const DirectWeights *d, const Column *column, int64_t i, int64_t tap) {
  int64_t channel = column->first + i;
  return (channel / d->in_block * d->window + tap) * d->in_block + channel % d->in_block;
}

void direct_pack(const DirectWeights *d, const float *source, float *packed) {
  int64_t depth = group_depth(d);
  for (int64_t kernel = 0; kernel < d->kernels; kernel++) {
    Column c = column_of(d, kernel, depth);
    for (int64_t i = 0; i < d->group_channels; i++)
      for (int64_t tap = 0; tap < d->window; tap++)
        packed[c.group + row_of(d, &c, i, tap) * c.columns + c.column] = *source++;
  }
}

/* Where a byte of an oc group's weights is, in rows of `size` bytes of each column. */
static int64_t byte_of(const DirectWeights *d, const Column *column, int64_t i, int64_t tap) {
  int64_t channel = column->first + i, size = d->by_two ? 2 * STEP_CHANNELS : STEP_CHANNELS;
  int64_t row = d->by_two ? (channel / size * d->window + tap) * size + channel % size : row_of(d, column, i, tap);
  return row / size * size * column->columns + column->column * size + row % size;
}

void direct_pack_bytes(const DirectWeights *d, const int8_t *source, int8_t *packed) {
  int64_t depth = group_depth(d);
  for (int64_t kernel = 0; kernel < d->kernels; kernel++) {
    Column c = column_of(d, kernel, depth);
    for (int64_t i = 0; i < d->group_channels; i++)
      for (int64_t tap = 0; tap < d->window; tap++) packed[c.group + byte_of(d, &c, i, tap)] = *source++;
  }
}
