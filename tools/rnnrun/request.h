/* SPDX-License-Identifier: MIT */
/*
 * What `rnnrun measure` reads from stdin: lines of `KEY VALUE`, then bytes.
 *
 *     rnncc-measure 1             the format's version
 *     module 182472               bytes of the module; the only key that must be there
 *     node n0                     whose kernels are timed; without it, all of them
 *     input 802816                bytes of an input; given once an input, in the module's order, or not at all
 *     ...                         the other keys are the fields of Request
 *     end
 *     (the module's bytes, the inputs' bytes)
 *     rnncc-measure-end
 */
#ifndef RNNRUN_REQUEST_H
#define RNNRUN_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { REQUEST_INPUTS = 64, REQUEST_TEXT = 512 };

typedef struct RequestInput {
  size_t bytes;
  void *data; /* malloc'd */
} RequestInput;

typedef struct Request {
  int module; /* descriptor of a file in memory, which has no name; -1: none yet */
  int64_t module_bytes;
  char node[REQUEST_TEXT]; /* "": all */
  int64_t threads;         /* 0: the module decides */
  int64_t least_runs, runs;
  double seconds;    /* to measure for, loading and the first runs apart */
  double precision;  /* relative standard error of the median that is good enough, 0: none is */
  double give_up_us; /* where no run is below that, the rest need not be run; 0: never */
  double limit;      /* seconds for all of it: what runs over is killed */
  int64_t evict;     /* bytes to read before each run, so that what was in the caches no longer is */
  int64_t seed;      /* of the inputs that are made up: as `--input x=random:SEED` does */
  int64_t outputs;   /* 1: the outputs of the first run are sent back */
  int n_inputs;      /* 0: they are filled by `seed` */
  RequestInput inputs[REQUEST_INPUTS];
  char wrong[2 * REQUEST_TEXT]; /* why it is no request */
} Request;

/* Returns 1; or 0 with the reason in `wrong`. In both cases call request_free(). */
int request_read(FILE *stream, Request *request);
void request_free(Request *request);

#endif
