/* SPDX-License-Identifier: MIT */
/*
 * The user's request: the target, the machine, the records, and the forced schedules. driver/config.c makes it from the
 * command line, once. The graph and all bodies in it share it; no pass changes it. The tuner gives each trial a changed
 * copy.
 */
#ifndef RNNCC_CONFIG_H
#define RNNCC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/precision.h"
#include "ir/training.h"

typedef struct Target Target;                   /* machine/targets.h */
typedef struct Machine Machine;                 /* machine/machine.h */
typedef struct ScheduleRecords ScheduleRecords; /* schedules/records.h */

/* How layouts are chosen: by rule; not at all (NONE), so that each convolution transforms its inputs and output; or by
 * a search with the solver of that name (search/choices.h), AUTO with the exact one if possible. */
typedef enum LayoutSearch {
  LAYOUT_SEARCH_GREEDY,
  LAYOUT_SEARCH_NONE,
  LAYOUT_SEARCH_WIDE, /* greedy, with wide blocks wherever possible */
  LAYOUT_SEARCH_DP,
  LAYOUT_SEARCH_PBQP,
  LAYOUT_SEARCH_AUTO
} LayoutSearch;

typedef struct Config {
  const Target *target;           /* compiled for */
  const Machine *machine;         /* schedules are chosen for */
  const ScheduleRecords *records; /* measured schedules; NULL: none */
  const char *rnn_schedule;       /* --rnn, checked; NULL: not given */
  const char *conv_schedule;      /* --conv, checked; NULL: not given */
  PrecisionRules precision;       /* --precision */
  bool bf16_products;             /* one of the module's targets has instructions for them */
  Training training;              /* --train, --loss */
  LayoutSearch layout_search;
  bool no_winograd;     /* --no-winograd */
  uint64_t seed;        /* --seed */
  bool mutable_weights; /* --weights=mutable */
  bool edge;            /* --profile=edge: no profile and no messages */
} Config;

#endif
