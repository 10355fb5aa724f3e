/* SPDX-License-Identifier: MIT */

/* legal: 1..8 */
enum { ROWS = 4 };

enum { NARROW = ROWS > 2 && FEW_REGISTERS };

static void vectors(float *x) {
  if (NARROW) x[0] = 1;
  if (!FEW_REGISTERS) x[1] = 2;
  if (ROWS > LANES) x[2] = 3;
  if (ROWS <= LANES) x[3] = 4;
}
