/* SPDX-License-Identifier: MIT */
/* Schedule records of convolutions. */
#ifndef RNNCC_CONVOLUTION_RECORDED_H
#define RNNCC_CONVOLUTION_RECORDED_H

#include "kernels/conv/convolution.h"
#include "schedules/records.h"

/* kernels_fingerprint() of the node's kernels with the schedule. */
const char *convolution_kernels(Graph *graph, const Node *node, ConvSchedule *schedule);

/* The key of a node in a layout: extents at their optimum, blocks, prologue and epilogue. */
RecordKey convolution_key(Graph *graph, const Node *node, NodeLayout layout);

/* The best record of the node's key and current kernels; NULL: none. */
const ScheduleRecord *convolution_record(Graph *graph, const Node *node, NodeLayout layout,
                                         const ScheduleRecords *records);
/* The same of the config's records, with its schedule and measured time in *schedule; NULL: none. Warns of a record of
 * other kernels, or whose schedule does not fit the node. */
const ScheduleRecord *convolution_record_to_use(Graph *graph, const Node *node, NodeLayout layout,
                                                ConvSchedule **schedule);

#endif
