/* SPDX-License-Identifier: MIT */
/* Copying channels of all pixels between tensors of any two layouts: transforms, Concat and Split of blocked tensors.
 */
#ifndef RNNCC_CHANNEL_COPY_H
#define RNNCC_CHANNEL_COPY_H

#include "program/build.h"

/* Some channels of a value of rank 3 or 4, of which all but N is known. */
typedef struct ChannelRange {
  const Value *value;
  int64_t first; /* channel */
} ChannelRange;

/* Adds the calls that copy `channels` channels; they touch different bytes, so no barrier stands between them. */
void lower_channel_copy(Program *program, const Node *node, ChannelRange from, ChannelRange to, int64_t channels);

/* All of a blocked value to a row-major one of its extents, but with the channels last: N, H, W, C. */
void lower_channels_last(Program *program, const Node *node, const Value *from, const Value *to);

#endif
