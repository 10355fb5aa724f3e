/* SPDX-License-Identifier: MIT */
/* Recurrent layers in the words of schedule records. */
#ifndef RNNCC_RECORDED_H
#define RNNCC_RECORDED_H

#include "kernels/recurrent/mm_dag.h"
#include "kernels/recurrent/stack.h"
#include "kernels/recurrent/variant.h"
#include "schedules/records.h"

/* Layers of one key are the same work: kind of cell, extents at their optimum, the most samples, what is given. */
RecordKey recurrent_key(Graph *graph, const MmLayer *layer);

/* The version of the kernels that run the layer by the variant: kernels_fingerprint(). */
const char *recurrent_kernels(Graph *graph, const MmLayer *layer, const RecurrentVariant *variant);

/* The best of the layer's key, of the kernels as they are; NULL if there is none. */
const ScheduleRecord *recurrent_record(Graph *graph, const MmLayer *layer, const ScheduleRecords *records);

/* That of graph->config->records, its schedule in `variant`; NULL if there is none, or, after a warning, none that can
 * be understood and is of the kernels as they are. */
const ScheduleRecord *recorded_variant(Graph *graph, const MmLayer *layer, RecurrentVariant *variant);

/* The same of a stack: `variant` says its chunk. Its kernels are those of its layers, each run by the variant. */
RecordKey stack_key(Graph *graph, const MmDag *dag, const Stack *stack);
const char *stack_kernels(Graph *graph, const Stack *stack, const RecurrentVariant *variant);
const ScheduleRecord *stack_record(Graph *graph, const MmDag *dag, const Stack *stack, const ScheduleRecords *records);
const ScheduleRecord *recorded_stack(Graph *graph, const MmDag *dag, const Stack *stack, RecurrentVariant *variant);

#endif
