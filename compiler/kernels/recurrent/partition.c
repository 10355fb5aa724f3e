/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/partition.h"

enum { FLOAT_BYTES = 4 };

typedef struct MatrixBytes {
  double a, b, c;
} MatrixBytes;

static MatrixBytes bytes_of(const MmExtents *mm) {
  double i = (double)mm->i, j = (double)mm->j, k = (double)mm->k;
  double element = mm->bytes ? 1 : FLOAT_BYTES;
  return (MatrixBytes){element * i * k, element * k * j, FLOAT_BYTES * i * j};
}

double pcp_traffic(const MmExtents *mm, Split x, int64_t private_bytes) {
  MatrixBytes bytes = bytes_of(mm);
  double steps = (double)mm->steps, moving = steps * (x.j * bytes.a + 2 * x.k * bytes.c);
  bool fits = bytes.b / (x.j * x.k) <= (double)private_bytes;
  return moving + (fits ? 1 : steps) * x.i * bytes.b;
}

bool split_is_legal(const MmExtents *mm, Split x) {
  return x.k == 1 && x.i >= 1 && x.i <= mm->most_i && x.j >= 1 && x.j <= mm->most_j;
}

/* The best split into exactly p parts; i = 0: none is legal. */
static Split split_into(const MmExtents *mm, int p, int64_t private_bytes) {
  const double tie = 1.05;
  Split best = {0}, chosen = {0};
  for (int j = 1; j <= p; j++) {
    Split x = {p / j, j, 1};
    if (p % j || !split_is_legal(mm, x)) continue;
    if (!best.i || pcp_traffic(mm, x, private_bytes) < pcp_traffic(mm, best, private_bytes)) best = x;
  }
  for (int j = p; best.i && j >= 1; j--) {
    Split x = {p / j, j, 1};
    if (p % j || !split_is_legal(mm, x)) continue;
    if (pcp_traffic(mm, x, private_bytes) <= tie * pcp_traffic(mm, best, private_bytes)) chosen = x;
  }
  return chosen;
}

Split pcp_split(const MmExtents *mm, int p, int64_t private_bytes) {
  for (; p > 1; p--) {
    Split x = split_into(mm, p, private_bytes);
    if (x.i) return x;
  }
  return (Split){1, 1, 1};
}
