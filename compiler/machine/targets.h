/* SPDX-License-Identifier: MIT */
/* A target is one const struct: what to tell clang, which SIMD vocabulary, how wide. */
#ifndef RNNCC_TARGETS_H
#define RNNCC_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct Target {
  const char *name;              /* for --target: "x86-64-v4", "aarch64-linux-gnu+dotprod" */
  const char *base;              /* the row of targets.def: without features, with glibc */
  const char *with_glibc;        /* the name with features, with glibc: schedules are recorded for it. Without those of
                                    x86, which no kernel of f32 uses */
  const char *isa;               /* "avx512"; also the vocabulary: templates/simd/<isa>.h */
  const char *triple;            /* "x86_64-linux-gnu" */
  const char *const *clang_args; /* features, explicit; NULL-terminated */
  const char *march_of_features; /* instead of -march among these, where features stand behind it; NULL: the same */
  int oldest_clang;              /* that knows them; 0: each that serves any target */
  int lanes;                     /* f32 in a vector */
  int vector_registers;
  int kept_registers;    /* of them, in convolutions: clang copies sums, and loads ahead */
  bool reads_ahead;      /* clang loads the elements of a tile ahead, though they have no registers */
  bool lane_operands;    /* a multiply-add takes a lane of a vector: no register for a broadcast */
  bool hides_vectors;    /* clang counts no vectors in a frame */
  bool two_operands;     /* a result takes the place of an operand: products need a register */
  bool has_dot;          /* DOT_NATIVE of templates/simd/int8.h: one instruction multiplies bytes, adds four */
  bool has_tiles;        /* one multiplies two rows of bytes by two columns: vtile_dot of int8.h */
  uint32_t tile_feature; /* CPU_*: with it, has_tiles; 0: the vocabulary has none */
  bool has_bf16_tiles;   /* one multiplies numbers of bf16: vbf16_dot of templates/simd/bf16.h */
  uint32_t bf16_feature; /* CPU_*: with it, has_bf16_tiles; 0: the vocabulary has none */
  int bf16_rows;         /* then BF16_ROWS there: rows of a tile, 1 or 2 */
  int bf16_depth;        /* then BF16_DEPTH: products that one adds to each sum */
  bool has_matrices;     /* one multiplies matrices of 16 rows: templates/simd/matrices.h */
  bool has_pair_dot;     /* one multiplies numbers of 16 bits, adds two and a sum: vpair_dot of int8.h, with VNNI */
  bool byte_pairs;       /* one multiplies bytes, adds two, saturated to 16 bits: the forms of int8.h count */
  int dot_zero;          /* DOT_ZERO: what dot products subtract from each input */
  uint32_t cpu_features; /* CPU_* of runtime/cpu.h that the module asks for */
  int64_t l1_bytes, l2_bytes, l3_bytes; /* per core, per core, shared; typical where cross-compiling */
  /* Typical of machines that it is used on. */
  int cores;
  double ghz, fma_per_cycle;           /* vectors */
  double fma_latency, loads_per_cycle; /* cycles, vectors */
  int sums; /* pipes of multiply-adds times their latency, of the CPU where that is most; 0: like the usual one's */
  double l1_gbps, l2_gbps, l3_gbps, dram_gbps; /* what one core reads while all do */
  double barrier_ns;                           /* of two cores, until what the other wrote is there */
} Target;

/* A row of targets.def; NULL if unknown. "native" is the best this CPU has. */
const Target *target_find(const char *name);
/* The same, or one with musl, or with features behind its name: "aarch64-linux-gnu+dotprod+fp16", in any order.
 * "native" has all features of x86 that this CPU has. */
const Target *target_named(Arena *arena, const char *name);
/* The name of the row's target with musl; NULL if there is none. */
const char *target_with_musl(const Target *target);
/* The features that a target takes: "+dotprod +fp16"; "" if none. */
const char *target_features(Arena *arena, const Target *target);
/* Has it an instruction that multiplies numbers of bf16? */
bool target_multiplies_bf16(const Target *target);
/* Has this machine what the target's modules ask for? */
bool target_runs_here(const Target *target);
const Target *target_at(int index); /* NULL past the end */

/* Has it 16 vector registers or fewer, not 32? As FEW_REGISTERS of templates/simd/simd.h. */
static inline bool target_has_few_registers(const Target *target) { return target->vector_registers < 32; }

#endif
