/* SPDX-License-Identifier: MIT */
/* One of the headers that every template is parsed behind. Only vectors.c needs it. */
enum { LANES = 2, FEW_REGISTERS = 1 };
