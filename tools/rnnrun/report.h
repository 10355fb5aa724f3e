/* SPDX-License-Identifier: MIT */
/* A profile as one page of HTML, which needs nothing else. */
#ifndef RNNRUN_REPORT_H
#define RNNRUN_REPORT_H

#include "counters.h"
#include "profiled.h"

/* GB/s that all threads together read from a level of memory; 0 if that is not known. */
typedef struct Bandwidth {
  const char *name;
  double gbps;
} Bandwidth;

enum { BANDWIDTHS = 2 };

typedef struct Report {
  const char *path; /* of the page */
  const Session *session;
  const rnncc_tensor *inputs;
  const Profile *profile;
  const Peaks *peaks;
  const Counters *counters;
  int64_t runs; /* those that were profiled, and as many that were counted */
  int threads;
} Report;

/* Measures bandwidths, and writes the page. Fails with EXIT_ENVIRONMENT if it cannot. */
void write_report(const Report *report);

#endif
