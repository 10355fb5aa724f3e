/* SPDX-License-Identifier: MIT */
/*
 * Times of a module, measured by another program: `rnnrun measure`, here or at the other end of an ssh. It gets the
 * module over stdin and answers on stdout (tools/rnnrun/request.h). So a module that crashes or hangs does so in that
 * process, and a device without a compiler can measure.
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
  int least_runs, runs;      /* minimum and maximum of timed runs; 0: rnnrun's default */
  double seconds;            /* to measure for, without loading and the first runs */
  double precision;          /* ends sooner if the median's relative standard error is below this */
  double give_up_us;         /* ends after three runs if none was faster; 0: never */
  double limit_seconds;      /* for loading and running; a module that takes longer hangs */
  double patience_seconds;   /* on top of that, for connecting and sending; 0: a minute */
  int64_t evict_bytes;       /* read before each run, so that weights come from memory as they do in a network */
  int64_t seed;              /* of generated inputs, as of `rnnrun run --input x=random:SEED` */
  int n_inputs;              /* 0: they are generated */
  const RunnerBytes *inputs; /* at the dims' optimum, in the module's order */
  bool outputs;              /* are to be returned */
} MeasureRequest;

typedef enum MeasureStatus {
  MEASURE_OK,
  MEASURE_CRASHED, /* the module's process ended by a signal, or without an answer */
  MEASURE_HUNG,    /* it did not end in time */
  MEASURE_FAILED,  /* not measured: the module was refused, or the runner does not work */
} MeasureStatus;

typedef struct Measurement {
  MeasureStatus status;
  const char *message;                            /* NULL if the status is MEASURE_OK; only then the rest is set */
  double least_us, lower_us, median_us, upper_us; /* lower, upper: quartiles */
  int runs, threads, cores;
  bool gave_up, disturbed; /* disturbed: other programs used the CPU, more than now and then */
  const char *cpu, *isa;
  int n_outputs; /* of the module, with the bytes of the first run; empty unless requested */
  const RunnerBytes *outputs;
} Measurement;

/* `runner` is a shell command; NULL: the rnnrun beside this program. If a signal came, this process ends, after the
 * runner's. All of the result is in the arena. */
Measurement measure_module(Arena *arena, const char *runner, const MeasureRequest *request);

#endif
