/* SPDX-License-Identifier: MIT */
/*
 * What was asked for: the target, the machine, the records, and the schedules that are forced. driver/config.c makes it
 * of the command line, once. The graph and all bodies in it share it; no pass changes it. The tuner, which asks for
 * something else in each trial, gives the trial a changed copy.
 */
#ifndef RNNCC_CONFIG_H
#define RNNCC_CONFIG_H

#include <stdbool.h>

typedef struct Target Target;                   /* machine/targets.h */
typedef struct Machine Machine;                 /* machine/machine.h */
typedef struct ScheduleRecords ScheduleRecords; /* schedules/records.h */

/* How layouts are chosen: by rule; not at all, so that each convolution transforms what it reads and writes; or by a
 * search with the solver of that name (search/choices.h), AUTO with the exact one where it can. */
typedef enum LayoutSearch {
  LAYOUT_SEARCH_GREEDY,
  LAYOUT_SEARCH_NONE,
  LAYOUT_SEARCH_WIDE, /* greedy, and in blocks of two vectors whatever can be */
  LAYOUT_SEARCH_DP,
  LAYOUT_SEARCH_PBQP,
  LAYOUT_SEARCH_AUTO
} LayoutSearch;

typedef struct Config {
  const Target *target;           /* what is compiled for */
  const Machine *machine;         /* what is planned for */
  const ScheduleRecords *records; /* measured schedules; NULL: none */
  const char *rnn_schedule;       /* what --rnn forces of recurrent layers, checked; NULL: nothing */
  const char *conv_schedule;      /* what --conv forces of convolutions, checked; NULL: nothing */
  LayoutSearch layout_search;
  bool no_winograd; /* convolutions are computed as they are defined */
} Config;

#endif
