/* SPDX-License-Identifier: MIT */
/* What a run takes at the dims' optimum, by the machine's description: for verdicts and colours, never for choices. */
#ifndef RNNCC_PREDICT_H
#define RNNCC_PREDICT_H

#include "program/program.h"

typedef struct Prediction {
  double *seconds;    /* by Call.row, of all turns of its loops */
  bool *by_memory;    /* it reads longer than it computes */
  double computing;   /* of calls that arithmetic holds */
  double reading;     /* of those that memory holds */
  double meeting;     /* of the workers, at barriers */
  double barriers;    /* in a run */
  const char *level;  /* where the weights are from run to run: "L2 cache", "L3 cache", "memory" */
  int workers;        /* that share the run */
  bool unknown_turns; /* a loop whose turns only the data tell counts as one */
} Prediction;

Prediction predict_program(const Program *program);

#endif
