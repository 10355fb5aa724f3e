/* SPDX-License-Identifier: MIT */
/* A part of a template: it knows the template's knobs, and has one of its own. */
/* Whether to negate.
 * legal: 0 1 */
enum { NEGATE = 0 };

static inline void clear(T sums[ROWS]) {
  for (int NEGATE_too = 0; NEGATE_too < ROWS; NEGATE_too++) sums[NEGATE_too] = 0;
}
