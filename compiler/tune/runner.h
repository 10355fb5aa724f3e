/* SPDX-License-Identifier: MIT */
/*
 * Times of a module, by another program: `rnnrun measure`, here or at the other end of an ssh. It gets the module over
 * stdin and answers on stdout (tools/rnnrun/request.h), so a module that crashes or hangs does so over there, and a
 * device without a compiler takes part.
 */
#ifndef RNNCC_RUNNER_H
#define RNNCC_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct RunnerBytes {
  const void *data;
  size_t size;
} RunnerBytes;

typedef struct MeasureRequest {
  const char *module;        /* path of the .so */
  const char *node;          /* whose kernels are timed; NULL: all */
  int threads;               /* 0: the module decides */
  int least_runs, runs;      /* timed ones, at least and at most; 0: as rnnrun has it */
  double seconds;            /* to measure for, loading and the first runs apart */
  double precision;          /* ends sooner where the median's standard error is that part of it */
  double give_up_us;         /* ends after three runs where none was faster; 0: never */
  double limit_seconds;      /* for loading and running: what takes longer hangs */
  double patience_seconds;   /* on top of that, for connecting and sending; 0: a minute */
  int64_t evict_bytes;       /* read before each run, so that weights come from memory as they do in a network */
  int64_t seed;              /* of inputs that are made up, as by `rnnrun run --input x=random:SEED` */
  int n_inputs;              /* 0: made up */
  const RunnerBytes *inputs; /* at the dims' optimum, in the module's order */
  bool outputs;              /* are wanted */
} MeasureRequest;

typedef enum MeasureStatus {
  MEASURE_OK,
  MEASURE_CRASHED, /* the module's process ended by a signal, or without an answer */
  MEASURE_HUNG,    /* it did not end in time */
  MEASURE_FAILED,  /* nothing is known of the module: it was refused, or the runner does not work */
} MeasureStatus;

typedef struct Measurement {
  MeasureStatus status;
  const char *message; /* NULL if it is ok */
  /* the rest is set only then */
  double least_us, lower_us, median_us, upper_us; /* lower, upper: quartiles */
  int runs, threads, cores;
  bool gave_up, disturbed; /* disturbed: other programs took the CPU away, more than now and then */
  const char *cpu, *isa;
  int n_outputs; /* of the module; their bytes are those of the first run, empty if not asked for */
  const RunnerBytes *outputs;
} Measurement;

/* `runner` is a shell command; NULL: the rnnrun that lies beside this program. A pending signal ends this process, the
 * runner's being gone. All of the result is in the arena. */
Measurement measure_module(Arena *arena, const char *runner, const MeasureRequest *request);

#endif
