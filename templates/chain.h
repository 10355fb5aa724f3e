/* SPDX-License-Identifier: MIT */
/* Loads and stores for chains of element-wise ops: elements in memory to vectors and masks, and back. */
#ifndef CHAIN_H
#define CHAIN_H

#include <stdint.h>

#include "simd/int8.h"
#include "simd/math.h"

/* Minimum elements of a worker: enough to be worth a barrier, and whole cache lines even of bytes. */
enum { CHAIN_PIECE = 1024 };

/* Loads n of LANES elements from i on; does not touch the others. */
SIMD_FUNCTION vec chain_load(const char *p, int64_t i, int n) {
  const float *at = (const float *)p + i;
  return n == LANES ? vload(at) : vload_n(at, n);
}
SIMD_FUNCTION void chain_store(char *p, int64_t i, int n, vec v) {
  float *at = (float *)p + i;
  if (n == LANES)
    vstore(at, v);
  else
    vstore_n(at, v, n);
}

/* The same for bools, a byte each. */
SIMD_FUNCTION vmask chain_load_mask(const char *p, int64_t i, int n) {
  float lane[LANES] = {0};
  for (int k = 0; k < n; k++) lane[k] = (float)p[i + k];
  return vne(vload(lane), vzero());
}
SIMD_FUNCTION void chain_store_mask(char *p, int64_t i, int n, vmask m) {
  float lane[LANES];
  vstore(lane, vone(m));
  for (int k = 0; k < n; k++) p[i + k] = (char)lane[k];
}

/* The same for integers of a byte; those that are stored are integers of the type. */
SIMD_FUNCTION vec chain_load_u8(const char *p, int64_t i, int n) {
  return vint_to_float(n == LANES ? vint_load_u8(p + i) : vint_load_u8_n(p + i, n));
}
SIMD_FUNCTION vec chain_load_s8(const char *p, int64_t i, int n) {
  return vint_to_float(n == LANES ? vint_load_s8(p + i) : vint_load_s8_n(p + i, n));
}
SIMD_FUNCTION void chain_store_u8(char *p, int64_t i, int n, vec v) {
  if (n == LANES)
    vint_store_u8(p + i, vround_to_int(v));
  else
    vint_store_u8_n(p + i, vround_to_int(v), n);
}
SIMD_FUNCTION void chain_store_s8(char *p, int64_t i, int n, vec v) {
  if (n == LANES)
    vint_store_s8(p + i, vround_to_int(v));
  else
    vint_store_s8_n(p + i, vround_to_int(v), n);
}

/* One element for the whole row. */
SIMD_FUNCTION vec chain_load_one_u8(const char *p) { return vset((float)*(const unsigned char *)p); }
SIMD_FUNCTION vec chain_load_one_s8(const char *p) { return vset((float)*(const signed char *)p); }
SIMD_FUNCTION vec chain_load_one(const char *p) { return vbroadcast_load((const float *)p); }
SIMD_FUNCTION vmask chain_load_one_mask(const char *p) { return vne(vset((float)*p), vzero()); }

#endif
