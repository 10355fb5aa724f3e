/* SPDX-License-Identifier: MIT */
/*
 * How a node is run: the kind of kernel, and its knobs. The text form names the kind, where a family has several, and
 * the knobs: "direct,oc=2,px=14,unroll=2,pass=0,groups=0,tiles=8" or "input=ahead,workers=2,...". The options --rnn and
 * --conv, schedule records, listings and dumps share it.
 */
#ifndef RNNCC_SCHEDULE_H
#define RNNCC_SCHEDULE_H

#include <stdbool.h>

#include "support/arena.h"

enum { MAX_SCHEDULE_KNOBS = 6, MAX_KNOB_VALUE = 9999999 }; /* of a schedule; of a number */

typedef struct ScheduleKnob {
  const char *name;
  int min, max;
  const char *const *words; /* the values' names, from min = 0 on; NULL: they are numbers */
} ScheduleKnob;

typedef struct ScheduleKind {
  const char *name;          /* the text's first word; NULL: none, for the family has no other kind */
  const ScheduleKnob *knobs; /* MAX_SCHEDULE_KNOBS at most; a name of NULL ends them */
} ScheduleKind;

/* By place in ScheduleKind.knobs. */
typedef struct Knobs {
  int value[MAX_SCHEDULE_KNOBS];
} Knobs;

/* Names every knob. */
const char *schedule_print(Arena *arena, const ScheduleKind *kind, const Knobs *knobs);

/* The contents of a schedule's text. */
typedef struct ParsedSchedule {
  const ScheduleKind *kind;
  bool named[MAX_SCHEDULE_KNOBS];
  Knobs knobs; /* of those that are named */
} ParsedSchedule;

/* kinds: of a family; NULL ends them. NULL if the text is well formed, else its offending part. */
const char *schedule_parse(const ScheduleKind *const *kinds, const char *text, ParsedSchedule *parsed);

/* Does the text name every knob? */
bool schedule_is_whole(const ParsedSchedule *parsed);

/* Sets the knobs that the text names. */
void schedule_set_named(const ParsedSchedule *parsed, Knobs *knobs);

#endif
