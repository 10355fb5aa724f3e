/* SPDX-License-Identifier: MIT */
/* A part of gather_nd.c and scatter_nd.c: where the elements of a tuple of indices begin. */

/* legal: int32_t int64_t */
typedef int64_t Index;

/* Indices in a tuple.
 * legal: 1..8 */
enum { DEPTH = 2 };
/* 1: checks indices; 0: they were checked before.
 * legal: 0 1 */
enum { CHECKED = 1 };

/* In elements. stride: of each indexed axis, as extent. */
static inline int64_t place(const Index *tuple, const int64_t *extent, const int64_t *stride, atomic_int *fault) {
  int64_t at = 0;
  for (int k = 0; k < DEPTH; k++) at += index_at(tuple[k], extent[k], CHECKED, fault) * stride[k];
  return at;
}
