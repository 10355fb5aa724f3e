/* SPDX-License-Identifier: MIT */
/* Operators of com.microsoft that become ONNX's: what their adaptations share. */
#ifndef RNNCC_CONTRIB_H
#define RNNCC_CONTRIB_H

#include "load/onnx/adapt.h"

Adaptation adapt_contrib_attention, adapt_multi_head, adapt_quantised_attention, adapt_group_query;
Adaptation adapt_contrib_rotary;
Adaptation adapt_nhwc_conv, adapt_nhwc_qlinear_conv, adapt_nhwc_max_pool, adapt_nhwc_average_pool;
Adaptation adapt_nhwc_fused_conv, adapt_nhwc_group_norm;
Adaptation adapt_dynamic_lstm;

/* Reports "WHAT of com.microsoft's OPERATOR" as not supported. Returns false, so that an adaptation can end with it. */
bool contrib_refuse(OnnxReader *reader, const Draft *draft, const char *what);
/* Is there any from `first` on? */
bool contrib_any_from(Value *const *values, int n, int first);
/* Elements [begin, end) of the last axis. */
Value *contrib_part(OnnxReader *reader, const Draft *draft, Value *x, int64_t begin, int64_t end);
/* The extent of an axis, [1]. */
Value *contrib_extent(OnnxReader *reader, const Draft *draft, Value *x, int64_t axis);
/* 0, 1, ... below n, which is [1]. */
Value *contrib_count(OnnxReader *reader, const Draft *draft, Value *n);
/* [B, heads, S, D] as [B, S, heads * D]. */
Value *contrib_heads_together(OnnxReader *reader, const Draft *draft, Value *x);
/* first, first + 1, ... for each of an axis of x: [B, S] of [B]. */
Value *contrib_positions(OnnxReader *reader, const Draft *draft, Value *first, Value *x, int64_t axis);

#endif
