/* SPDX-License-Identifier: MIT */
/* The seam between emitted code and the runtime: what a generated unit defines and the runtime reads. */
#ifndef RNNCC_MODULE_H
#define RNNCC_MODULE_H

#include "rnncc.h"
#include "team.h"

/* What one run hands to the schedule. Shared by all workers, read-only but for `fault`. */
typedef struct Run {
  const void *const *inputs;    /* the caller's data, then nothing: states arrive in the arena */
  void *const *outputs;         /* the caller's buffers */
  unsigned char *arena;         /* arena_bytes, 64-byte aligned */
  const unsigned char *weights; /* packed, 64-byte aligned */
  const int64_t *dims;          /* value of each named dimension in this run, indexed as in info */
  _Atomic int *fault;           /* a kernel that meets an out-of-range value stores an rnncc_status here and goes on */
  uint64_t *stamps;             /* NULL, or one monotonic time in ns per schedule step, written by rank 0: profiling */
} Run;

typedef struct ModuleState {
  size_t arena_in, arena_out; /* where the schedule reads the old and writes the new state, dense at run-time shape */
  size_t bytes;               /* at the dimensions' maxima */
} ModuleState;

/* A check of input data that must hold before anything runs: every element of input in [lo, hi). */
typedef struct ModuleRangeCheck {
  int32_t input;    /* an i32, i64 or u8 input */
  int64_t lo, hi;   /* hi is used where hi_dim is -1 */
  int32_t hi_dim;   /* else the bound is this dimension's run-time value, plus hi */
  const char *what; /* e.g. "sequence length", for the message */
} ModuleRangeCheck;

typedef struct ModuleStep {
  const char *kernel, *node;
  double flops, bytes;
} ModuleStep;

typedef struct Module {
  rnncc_info info;
  uint32_t cpu_features; /* CPU_* bits the kernels use */
  const unsigned char *weights;
  const ModuleState *states; /* info.n_states */
  const ModuleRangeCheck *checks;
  int32_t n_checks;
  const ModuleStep *steps; /* profile's rows, in schedule order */
  int32_t n_steps;
  /* Writes the run-time shape of every output (rank values each, in order), given dims. */
  void (*output_shapes)(const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]);
  /* The inference. Called by every worker of the team at once. */
  void (*schedule)(const Run *run, Team *team);
  /* Outputs that the schedule leaves in the arena, because a run can still fault after writing them. */
  const int64_t *staged_outputs; /* per output: arena offset, or -1 if written in place; NULL if none is staged */
} Module;

/* Bits of cpu_features. */
enum {
  CPU_AVX2 = 1u << 0,   /* with FMA and F16C */
  CPU_AVX512 = 1u << 1, /* F, CD, BW, DQ, VL */
  CPU_NEON = 1u << 2,
};

/* The features of the CPU this runs on. */
uint32_t cpu_features(void);

/* Defined by the emitted unit. */
extern const Module rnncc_module;

/* For profiling: monotonic nanoseconds into run->stamps[step], by rank 0 only, if profiling is on. */
void module_stamp(const Run *run, const Team *team, int step);

#endif
