/* SPDX-License-Identifier: MIT */
/*
 * The samples of a calibration. A sample is a file of each input. One that is longer along its first axis than the
 * input may be holds several samples in a row: it is cut into pieces of the length that schedules are chosen for. Each
 * piece is a run; states are carried from piece to piece, and begin anew with each file.
 *
 * Every fourth run is held out, if there are four or more: ranges come from the others, errors from these.
 */
#ifndef RNNCC_QUANTISE_SAMPLES_H
#define RNNCC_QUANTISE_SAMPLES_H

#include "ir/tensor.h"

typedef struct DataOption {
  const char *input;   /* NULL: the model's only one */
  const char *pattern; /* of paths, as a shell's; may be a path */
} DataOption;

typedef struct Run {
  const Tensor *inputs; /* of the graph, in its order */
  bool first;           /* of its file: states begin anew */
  bool held_out;
  const char *file; /* of the first input, for messages */
} Run;

typedef struct Samples {
  int n_files, n_runs, n_held_out; /* without held-out runs errors are of all runs */
  Run *runs;
} Samples;

/* "x=folder/<pattern>", or only the pattern. */
DataOption data_option(Arena *arena, const char *text);

/* fatal_at() if files do not match the graph's inputs. Warns of few samples. */
Samples samples_read(Graph *graph, int n_options, const DataOption *options);

#endif
