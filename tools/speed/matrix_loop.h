/* SPDX-License-Identifier: MIT */
/* Products of matrices of 8-bit integers in AMX's registers, 16 rows by 16 columns of 64 numbers each, for speed.c. */
#ifndef RNNCC_MATRIX_LOOP_H
#define RNNCC_MATRIX_LOOP_H

#include <stdbool.h>

#include "cpu.h"

enum { MATRIX_PRODUCTS = 4, MATRIX_MULTIPLY_ADDS = 16 * 16 * 64 }; /* of a step, and of each product */

#if defined __x86_64__
static bool has_matrices(void) { return (cpu_features() & CPU_AMX) && cpu_grants(CPU_AMX); }

/* As LDTILECFG reads it. */
typedef struct TileConfig {
  unsigned char palette, start_row, reserved[14];
  unsigned short row_bytes[16];
  unsigned char rows[16];
} TileConfig;

/* Each sum waits for the one before it in the same register: four hide that. */
__attribute__((target("amx-tile,amx-int8"))) static void multiply_matrices(long steps) {
  TileConfig config = {.palette = 1};
  for (int i = 0; i < 8; i++) config.row_bytes[i] = 64, config.rows[i] = 16;
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
  for (long step = 0; step < steps; step++)
    __asm__ volatile("tdpbssd %tmm6, %tmm4, %tmm0\n\ttdpbssd %tmm7, %tmm4, %tmm1\n\t"
                     "tdpbssd %tmm6, %tmm5, %tmm2\n\ttdpbssd %tmm7, %tmm5, %tmm3");
  __asm__ volatile("tilerelease");
}

#else
static bool has_matrices(void) { return false; }
static void multiply_matrices(long steps) { (void)steps; }
#endif

#endif
