/* SPDX-License-Identifier: MIT */
/* Profiled runs: times of each kernel, and the fastest run as it was, with what each worker did in it. */
#ifndef RNNRUN_PROFILED_H
#define RNNRUN_PROFILED_H

#include <stdbool.h>

#include "session.h"
#include "timings.h"

/* What the workers did in one run. */
typedef struct Spans {
  size_t capacity; /* of a worker */
  rnncc_span *list;
  size_t *counts;
} Spans;

typedef struct Profile {
  size_t count;                 /* of kernels */
  rnncc_profile_entry *fastest; /* of one run, with the flops and bytes of its extents; names are the module's */
  uint64_t fastest_ns;          /* its sum */
  Timings *kernels, run;        /* in microseconds: of each kernel, and of their sum */
  bool at_optimum;              /* an older module: its flops and bytes are those at the dims' optimum */
  int workers;
  Spans spans; /* of the fastest run; no list where the module cannot say */
} Profile;

/* Runs that many times. */
Profile profile_runs(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, int64_t runs);
void profile_free(Profile *profile);

/* A worker's spans of the fastest run, in the order of time; when the first of all workers began. */
const rnncc_span *profile_spans(const Profile *profile, int worker);
size_t profile_span_count(const Profile *profile, int worker);
uint64_t profile_begins(const Profile *profile);

/* GFLOP/s of all threads, 0 where it is not known: multiply-adds of f32, of bf16, and of integers of 8 bits if any
 * kernel has such. Of a module with AMX the latter two are AMX's. */
typedef struct Peaks {
  double f32, bf16, int8;
  const char *small_isa; /* that those of bf16 and int8 are of */
} Peaks;

Peaks profile_peaks(const Profile *profile, const rnncc_info *info, int threads);
double peak_of(const Peaks *peaks, const rnncc_profile_entry *entry);

/* The part of the run's median time that its work takes at peak speed; 0 if that is not known. */
double profile_share_of_peak(const Profile *profile, const Peaks *peaks);

#endif
