/* SPDX-License-Identifier: MIT */
/* Several samples of a module's inputs: files that match a pattern, or random ones. */
#ifndef RNNRUN_SAMPLES_H
#define RNNRUN_SAMPLES_H

#include "arguments.h"

typedef struct Samples {
  int count;
  Arguments *arguments; /* of each sample: those of the command line, with its own inputs */
} Samples;

/* `--input x=@folder/<pattern>` are as many samples as files match, in the order of their names; files of several
 * inputs belong together by that order. `random` is another seed in each, everything else the same. */
Samples samples_of(const Arguments *arguments);
void samples_free(Samples *samples);

#endif
