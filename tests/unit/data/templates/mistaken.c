/* SPDX-License-Identifier: MIT */
/* hook: what becomes of each element */
static inline float finish(float x) { return x; }

/* A mistake behind a hook. */
static void mistaken(const float *in, float *out) { out[0] = nowhere * finish(in[0]); }
