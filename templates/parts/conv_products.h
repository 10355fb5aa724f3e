/* SPDX-License-Identifier: MIT */
/* A part of conv_direct.c and conv_transposed_blocked.c: what a tap adds to the sums of a tile. Between columns are
 * STRIDE_W columns of the input. */
/* One tap of one block: `depth` input channels, for the columns in `inside`, or all. */
SIMD_FUNCTION void multiply(vec sums[OC_VECTORS][COLUMNS], const float *x, const float *w, int64_t depth, int vectors,
                            int columns, bool all, uint32_t inside) {
#pragma clang loop unroll_count(UNROLL)
  for (int64_t k = 0; k < depth; k++) {
    vec weight[OC_VECTORS];
#pragma clang loop unroll(full)
    for (int j = 0; j < vectors; j++) weight[j] = vload(w + (k * vectors + j) * LANES);
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      if (!all && !(inside >> m & 1)) continue;
      vec in = vbroadcast_load(x + m * STRIDE_W * IN_BLOCK + k);
#pragma clang loop unroll(full)
      for (int j = 0; j < vectors; j++) sums[j][m] = vfma(sums[j][m], in, weight[j]);
    }
  }
}

/* BY_LANES: the same for all columns. A column's channels are lanes of one vector, and operands of the multiply-adds:
 * an element costs neither a load nor a register of its own. */
SIMD_FUNCTION void multiply_by_lanes(vec sums[OC_VECTORS][COLUMNS], const float *x, const float *w, int64_t depth,
                                     int vectors, int columns) {
  int64_t done = 0;
  for (; done + LANES <= depth; done += LANES, x += LANES, w += vectors * LANES * LANES) {
    vec in[COLUMNS];
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) in[m] = vload(x + m * STRIDE_W * IN_BLOCK);
#pragma clang loop unroll(full)
    for (int k = 0; k < LANES; k++) {
#pragma clang loop unroll(full)
      for (int j = 0; j < vectors; j++) {
        vec weight = vload(w + (k * vectors + j) * LANES);
#pragma clang loop unroll(full)
        for (int m = 0; m < columns; m++) sums[j][m] = vfma(sums[j][m], vlane(in[m], k), weight);
      }
    }
  }
  multiply(sums, x, w, depth - done, vectors, columns, true, 0);
}

/* One tap of one block, whose columns in the input only the run knows. */
SIMD_FUNCTION void multiply_any(vec sums[OC_VECTORS][COLUMNS], const float *x, const float *w, int64_t depth,
                                int vectors, int columns, uint32_t inside) {
  const uint32_t all = (1u << columns) - 1;
  if (BY_LANES && inside == all)
    multiply_by_lanes(sums, x, w, depth, vectors, columns);
  else if (inside == all)
    multiply(sums, x, w, depth, vectors, columns, true, all);
  else if (inside)
    multiply(sums, x, w, depth, vectors, columns, false, inside);
}
