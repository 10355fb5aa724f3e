/* SPDX-License-Identifier: MIT */
/* Recurrent layers in the words of schedule records. */
#ifndef RNNCC_RECORDED_H
#define RNNCC_RECORDED_H

#include "kernels/recurrent/mm_dag.h"
#include "kernels/recurrent/stack.h"
#include "kernels/recurrent/variant.h"
#include "schedules/records.h"

/* The version of the kernels. */
const char *recurrent_kernels(Arena *arena, const Target *target);

/* Layers of one key are the same work: kind of cell, extents at their optimum, the most samples, what is given. */
RecordKey recurrent_key(Graph *graph, const MmLayer *layer);

/* The record of the layer's key in graph->config->records, its schedule in `variant`; NULL if there is none, or, after
 * a warning, none that can be understood. */
const ScheduleRecord *recorded_variant(Graph *graph, const MmLayer *layer, RecurrentVariant *variant);

/* The same of a stack: `variant` says its chunk. */
RecordKey stack_key(Graph *graph, const MmDag *dag, const Stack *stack);
const ScheduleRecord *recorded_stack(Graph *graph, const MmDag *dag, const Stack *stack, RecurrentVariant *variant);

#endif
