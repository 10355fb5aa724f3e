/* SPDX-License-Identifier: MIT */
#include "expand/constant_blocks.h"

#include "ir/narrow.h"
#include "ir/op.h"
#include "ir/precision.h"

typedef struct Blocks {
  const uint8_t *numbers, *zeros; /* rows of packed numbers, and of packed zero points; NULL: the middle one */
  const float *scales;            /* [N][blocks] */
  int64_t K, N, bits, block, blocks;
} Blocks;

static bool is_constant(const Value *value) { return !value || value->data; }

static Blocks blocks_of(const Node *node) {
  Blocks b = {.numbers = node->inputs[1]->data,
              .scales = node->inputs[2]->data,
              .K = node_int(node, ATTR_K),
              .N = node_int(node, ATTR_N),
              .bits = node_int(node, ATTR_bits),
              .block = node_int(node, ATTR_block_size)};
  if (node_input(node, 3)) b.zeros = node->inputs[3]->data;
  b.blocks = (b.K + b.block - 1) / b.block;
  return b;
}

/* Number i of a row that begins with a byte of its own. */
static int number_at(const uint8_t *rows, int64_t row, int64_t row_numbers, int64_t i, int64_t bits) {
  const uint8_t *from = rows + row * ((row_numbers * bits + 7) / 8);
  return from[i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1);
}

/* Less its zero point. */
static int integer_of(const Blocks *b, int64_t n, int64_t k) {
  int zero = b->zeros ? number_at(b->zeros, n, b->blocks, k / b->block, b->bits) : 1 << (b->bits - 1);
  return number_at(b->numbers, n, b->blocks * b->block, k, b->bits) - zero;
}

static const NarrowWeights *narrow_of(Graph *graph, const Blocks *b, int least, int most) {
  bool grouped = b->blocks > 1;
  if (least < -128 || most > 127 || (grouped && !precision_group_fits(b->block))) return NULL;
  if (!narrow_scales_fit(b->scales, b->N * b->blocks)) return NULL;
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  *narrow = (NarrowWeights){.dtype = least >= -8 && most <= 7 ? RNNCC_I4 : RNNCC_I8,
                            .scales = b->scales,
                            .inner = 1,
                            .count = b->N,
                            .group = grouped ? b->block : 0,
                            .groups = b->blocks};
  return narrow;
}

Value *constant_blocks(Graph *graph, const Node *node) {
  const Value *zero = node_input(node, 3);
  if (!node->inputs[1]->data || !node->inputs[2]->data || !is_constant(zero)) return NULL;
  if (zero && zero->dtype != RNNCC_U8) return NULL;
  Blocks b = blocks_of(node);
  float *data = ARENA_ARRAY(graph->arena, float, b.K *b.N);
  int least = 0, most = 0;
  for (int64_t n = 0; n < b.N; n++) {
    for (int64_t k = 0; k < b.K; k++) {
      int number = integer_of(&b, n, k);
      if (number < least) least = number;
      if (number > most) most = number;
      data[k * b.N + n] = (float)number * b.scales[n * b.blocks + k / b.block];
    }
  }
  Value *made = graph_constant(graph, node->inputs[1]->name, RNNCC_F32, 2, (const int64_t[]){b.K, b.N}, data);
  made->narrow = narrow_of(graph, &b, least, most);
  return made;
}
