/* SPDX-License-Identifier: MIT */
/* The CPU's own counters, of this thread and of those that it makes later, as far as the system allows. */
#ifndef RNNRUN_COUNTERS_H
#define RNNRUN_COUNTERS_H

#include <stdint.h>

enum { COUNTERS = 8 };

typedef struct Counter {
  const char *name;
  int file;       /* -1: refused */
  int error;      /* errno of that */
  uint64_t count; /* set by counters_stop() */
} Counter;

typedef struct Counters {
  Counter list[COUNTERS];
} Counters;

/* Before the workers are made. */
Counters counters_open(void);
void counters_start(Counters *counters);
void counters_stop(Counters *counters);
void counters_close(Counters *counters);

#endif
