/* SPDX-License-Identifier: MIT */
/* A part of the templates of maxima: what they begin with. T stands before it. */

/* The least value of the type. */
static inline T least(void) {
  if ((T)0.5f != 0) return (T)-__builtin_inff();
  return (T)-1 > 0 ? 0 : (T)-128;
}
