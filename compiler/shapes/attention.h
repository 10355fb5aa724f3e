/* SPDX-License-Identifier: MIT */
/* The operands of attention. B batch, S queries, T keys, P of them cached; heads of D elements, of V in the values. */
#ifndef RNNCC_ATTENTION_H
#define RNNCC_ATTENTION_H

#include "ir/graph.h"

typedef struct Attention {
  bool packed;               /* heads lie in the last axis: [B, S, heads * D]; else [B, heads, S, D] */
  int64_t q_heads, kv_heads; /* q_heads is a multiple of kv_heads: some queries' heads share keys and values */
  int64_t head, v_head;      /* D and V */
  const Dim *batch, *queries, *past, *keys; /* B, S, P, T */
  double scale;
} Attention;

/* False after an error. */
bool read_attention(Graph *graph, const Node *node, Attention *attention);

typedef struct Rotary {
  bool packed;                 /* [B, S, heads * D]; else [B, heads, S, D] */
  int64_t heads, head, turned; /* the first `turned` elements of each head are turned */
} Rotary;
bool read_rotary(Graph *graph, const Node *node, Rotary *rotary);

/* Heads of the keys have D elements, of the values V. */
typedef struct LinearAttention {
  bool gated, delta;         /* the state decays; what it holds already is taken off */
  int64_t q_heads, kv_heads; /* q_heads is a multiple of kv_heads */
  int64_t head, v_head;
  const Dim *batch, *steps;
  double scale;
} LinearAttention;
bool read_linear_attention(Graph *graph, const Node *node, LinearAttention *linear);

#endif
