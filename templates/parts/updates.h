/* SPDX-License-Identifier: MIT */
/* A part of scatter_elements.c and scatter_nd.c: what an update makes of the element that it meets. */

/* UPDATE_REPLACES, ...
 * legal: 0..4 */
enum { REDUCTION = UPDATE_REPLACES };

/* NaN is the minimum and the maximum. `T` is the element. */
static inline T reduced(T held, T update) {
  if (REDUCTION == UPDATE_ADDS) return (T)(held + update);
  if (REDUCTION == UPDATE_MULTIPLIES) return (T)(held * update);
  if (REDUCTION == UPDATE_MIN) return held < update || held != held ? held : update;
  if (REDUCTION == UPDATE_MAX) return held > update || held != held ? held : update;
  return update;
}
