/* SPDX-License-Identifier: MIT */
/* Weights and biases in integers. */
#ifndef RNNCC_QUANTISE_WEIGHTS_H
#define RNNCC_QUANTISE_WEIGHTS_H

#include "quantise/layers.h"

/* A constant of the graph in eight bits, symmetric around 0, with a scale for each index of `axis`; recurrent weights
 * of two directions have one for each direction and row. `least`: by channel, what the scale must not be below, so that
 * a bias fits in i32; NULL: nothing. most: integers are from -most to most. */
Rounded weights_round(Arena *arena, const Value *weights, int axis, const double *least, int most);

/* Which scale the i-th element has. */
int64_t scale_place(const Value *weights, int axis, int64_t i);

/* The bias of a layer, [M], in f32: its own, or zeros, less what rounding adds to the layer's mean output, as the input
 * channels' means tell (Nagel et al. 2019, bias correction). NULL: it has a bias of another form, which stays. */
float *bias_corrected(const Layers *layers, const Layer *layer, const Rounded *rounded, bool correct);

/* Does the layer have a bias that can be in i32, or could it have one? */
bool bias_is_plain(const Layer *layer);

int64_t channels_of(const Layer *layer);

#endif
