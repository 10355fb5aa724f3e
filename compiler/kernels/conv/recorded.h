/* SPDX-License-Identifier: MIT */
/* Convolutions in the words of schedule records. */
#ifndef RNNCC_CONVOLUTION_RECORDED_H
#define RNNCC_CONVOLUTION_RECORDED_H

#include "kernels/conv/convolution.h"
#include "schedules/records.h"

/* The version of the kernels that run the node by the schedule: kernels_fingerprint(). */
const char *convolution_kernels(Graph *graph, const Node *node, ConvSchedule *schedule);

/* Of a node, if it is laid out so. Nodes of one key are the same work: extents at their optimum, blocks, and what is
 * done beside the sums. */
RecordKey convolution_key(Graph *graph, const Node *node, NodeLayout layout);

/* The best of the node's work, of the kernels as they are; NULL if there is none. */
const ScheduleRecord *convolution_record(Graph *graph, const Node *node, NodeLayout layout,
                                         const ScheduleRecords *records);
/* That of the config's records, its schedule in *schedule, or NULL; its seconds as measured. A record that is
 * of other kernels, or says no schedule of the node, is told. */
const ScheduleRecord *convolution_record_to_use(Graph *graph, const Node *node, NodeLayout layout,
                                                ConvSchedule **schedule);

#endif
