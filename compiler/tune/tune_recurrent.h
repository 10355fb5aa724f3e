/* SPDX-License-Identifier: MIT */
/*
 * `rnncc tune --rnn`: of each distinct recurrent layer of a model, the few variants that are predicted to be best are
 * compiled into the whole model and measured there, each against the best so far, and the winner is recorded.
 */
#ifndef RNNCC_TUNE_RECURRENT_H
#define RNNCC_TUNE_RECURRENT_H

#include "ir/graph.h"
#include "options.h"
#include "schedules/records.h"

/* Compiles the model to `module` with these records: main.c's pipeline. */
typedef void BuildModule(const Options *options, const ScheduleRecords *records, const char *module);

/* `graph` has its shapes. Appends to `output`; progress goes to stderr, the result to stdout. */
void tune_recurrent(const Options *options, Graph *graph, BuildModule *build, const char *output);

#endif
