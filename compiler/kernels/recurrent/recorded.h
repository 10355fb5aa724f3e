/* SPDX-License-Identifier: MIT */
/* Schedule records of recurrent layers. */
#ifndef RNNCC_RECORDED_H
#define RNNCC_RECORDED_H

#include "kernels/recurrent/mm_dag.h"
#include "kernels/recurrent/stack.h"
#include "kernels/recurrent/variant.h"
#include "schedules/records.h"

/* The key of a layer: kind of cell, extents at their optimum, the most samples, which inputs are given. */
RecordKey recurrent_key(Graph *graph, const MmLayer *layer);

/* kernels_fingerprint() of the layer's kernels with the variant. */
const char *recurrent_kernels(Graph *graph, const MmLayer *layer, const RecurrentVariant *variant);

/* The best record of the layer's key and current kernels; NULL: none. */
const ScheduleRecord *recurrent_record(Graph *graph, const MmLayer *layer, const ScheduleRecords *records);

/* The same of graph->config->records, with its schedule in `variant`. NULL: none, or, after a warning, none that is
 * valid and of the current kernels. */
const ScheduleRecord *recorded_variant(Graph *graph, const MmLayer *layer, RecurrentVariant *variant);

/* The same for a stack: `variant` has its chunk. Its kernels are those of its layers, each with the variant. */
RecordKey stack_key(Graph *graph, const MmDag *dag, const Stack *stack);
const char *stack_kernels(Graph *graph, const Stack *stack, const RecurrentVariant *variant);
const ScheduleRecord *stack_record(Graph *graph, const MmDag *dag, const Stack *stack, const ScheduleRecords *records);
const ScheduleRecord *recorded_stack(Graph *graph, const MmDag *dag, const Stack *stack, RecurrentVariant *variant);

#endif
