/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of optimisers: loops over a part of all parameters, laid out one behind the other. Each element's
 * result depends on that element alone, so that any partition gives the same bits.
 */
#ifndef RNNCC_OPTIMIZER_H
#define RNNCC_OPTIMIZER_H

#include <stdint.h>

/* What a step takes for a part's elements. */
typedef struct Update {
  rnncc_optimizer by;
  float scale;            /* of gradients: the caller's, and to clip their norm */
  float first_rate;       /* Adam: learning rate / (1 - beta1^t), of the part's step t */
  float second_root;      /* Adam: sqrt(1 - beta2^t) */
  const float *before;    /* all weights */
  float *weights;         /* what becomes of them, apart */
  const float *gradients; /* of the same places */
  float *first, *second;  /* momentum, or Adam's means of gradients and of their squares */
} Update;

/* Sixteen sums side by side, so that the compiler may use vectors, added up in one order. */
static inline double squares_of(const float *x, int64_t n) {
  enum { LANES = 16 };
  double sum[LANES] = {0}, all = 0;
  for (int64_t i = 0; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) sum[k] += (double)x[i + k] * (double)x[i + k];
  for (int64_t i = n / LANES * LANES; i < n; i++) sum[i % LANES] += (double)x[i] * (double)x[i];
  for (int k = 0; k < LANES; k++) all += sum[k];
  return all;
}

static inline void sgd_update(const Update *u, int64_t begin, int64_t end) {
  float *restrict next = u->weights, *restrict momentum = u->first;
  const float *restrict w = u->before, *restrict d = u->gradients;
  const float rate = u->by.learning_rate, decay = u->by.weight_decay, keep = u->by.momentum, scale = u->scale;
  if (keep == 0) {
    for (int64_t i = begin; i < end; i++) next[i] = w[i] - rate * (d[i] * scale + decay * w[i]);
    return;
  }
  const float ahead = u->by.nesterov ? keep : 1, own = u->by.nesterov ? 1 : 0;
  for (int64_t i = begin; i < end; i++) {
    float g = d[i] * scale + decay * w[i];
    momentum[i] = keep * momentum[i] + g;
    next[i] = w[i] - rate * (own * g + ahead * momentum[i]);
  }
}

static inline void adam_update(const Update *u, int64_t begin, int64_t end) {
  float *restrict next = u->weights, *restrict mean = u->first, *restrict square = u->second;
  const float *restrict w = u->before, *restrict d = u->gradients;
  const float b1 = u->by.beta1, b2 = u->by.beta2, epsilon = u->by.epsilon, scale = u->scale;
  const float part = u->by.rule == RNNCC_ADAM ? u->by.weight_decay : 0;
  const float left = u->by.rule == RNNCC_ADAMW ? 1 - u->by.learning_rate * u->by.weight_decay : 1;
  const float rate = u->first_rate, root = 1 / u->second_root;
  for (int64_t i = begin; i < end; i++) {
    float g = d[i] * scale + part * w[i];
    mean[i] = b1 * mean[i] + (1 - b1) * g;
    square[i] = b2 * square[i] + (1 - b2) * g * g;
    next[i] = w[i] * left - rate * mean[i] / (__builtin_sqrtf(square[i]) * root + epsilon);
  }
}

#endif
