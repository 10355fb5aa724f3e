/* SPDX-License-Identifier: MIT */
/* Copies channels of all pixels between any two layouts: for transforms, Concat and Split of blocked tensors. */
#ifndef RNNCC_CHANNEL_COPY_H
#define RNNCC_CHANNEL_COPY_H

#include "program/build.h"

/* Channels of a value of rank 3 or 4; their number is constant. */
typedef struct ChannelRange {
  const Value *value;
  int64_t first; /* channel */
} ChannelRange;

/* Adds the calls that copy `channels` channels; they write different bytes and need no barrier between. */
void lower_channel_copy(Program *program, const Node *node, ChannelRange from, ChannelRange to, int64_t channels);

/* Copies a blocked value to a row-major one with channels last: N, H, W, C. */
void lower_channels_last(Program *program, const Node *node, const Value *from, const Value *to);
/* The other way round. */
void lower_channels_first(Program *program, const Node *node, const Value *from, const Value *to);

#endif
