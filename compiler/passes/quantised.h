/* SPDX-License-Identifier: MIT */
/*
 * Shared by the passes over quantised tensors: a number q of a tensor stands for scale * (q - zero), where scale and
 * zero are those of the whole tensor or of a position on an axis.
 */
#ifndef RNNCC_QUANTISED_PASSES_H
#define RNNCC_QUANTISED_PASSES_H

#include "ir/graph.h"
#include "shapes/build.h"

enum { WHOLE_TENSOR = -1 };

typedef struct Quantisation {
  DType dtype;         /* of the numbers: i8, u8, or i32 */
  Value *scale, *zero; /* f32, and of dtype or NULL: 0 */
  int axis;            /* 0..rank-1, or WHOLE_TENSOR */
} Quantisation;

/* Is there a QuantizeLinear or a DequantizeLinear? The passes leave other graphs as they are. */
bool has_pairs(const Graph *graph);

/* Is it a QuantizeLinear to i8, u8 or i32, in f32 and not by blocks? */
bool read_quantize(const Node *node, Quantisation *how);

/* What the value is dequantised from, by a DequantizeLinear of these types; NULL: nothing of that kind. */
Value *dequantised_from(const Value *value, Quantisation *how);

bool has_8_bits(const Quantisation *how);
bool is_whole(const Quantisation *how);
/* Are the scale and the zero point constants? */
bool is_known(const Quantisation *how);
/* Do equal numbers stand for equal values? */
bool same_quantisation(const Quantisation *a, const Quantisation *b);

/* Of a known one: the numbers at a position on its axis. */
double scale_at(const Quantisation *how, int64_t position);
int64_t zero_at(const Quantisation *how, int64_t position);
/* QuantizeLinear of one number. */
int64_t quantised_number(const Quantisation *how, int64_t position, float x);

/* A constant scalar of the type. */
Value *integer_scalar(const Builder *builder, DType dtype, int64_t number);
/* Its zero point, made if it is absent. */
Value *zero_of(const Builder *builder, const Quantisation *how);
/* value as DequantizeLinear gives it, and a value as QuantizeLinear does. */
Node *build_dequantize(const Builder *builder, Value *value, const Quantisation *how);
Node *build_quantize(const Builder *builder, Value *value, const Quantisation *how);

#endif
