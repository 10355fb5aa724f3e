/* SPDX-License-Identifier: MIT */
/* The output's name and path: given, or made from the model's. */
#ifndef RNNCC_OUTPUT_H
#define RNNCC_OUTPUT_H

#include "driver/options.h"
#include "ir/graph.h"
#include "program/program.h"
#include "support/text.h"

/* The last part of the path without its suffix, as an identifier of C. */
const char *file_identifier(Arena *arena, const char *path);

/* With which globals and the names of a header begin: of a bundle they are made from the output's. */
const char *output_name(const Options *options, Arena *arena);
const char *output_path(const Options *options, Arena *arena);
/* Before anything is read: none of the files that will be written may be, and each of them can be written. */
void outputs_are_known(const Options *options, Arena *arena);
/* The folder of the generated unit: the output itself for --emit=c, else a temporary one. */
const char *output_folder(const Options *options, Arena *arena);
void output_text(const Options *options, Text text);
/* The header of a static library, beside it. */
void output_header_beside(const Options *options, Text text);

/* For a device: the memory that a network of the module needs, to stdout. */
void output_sizes(const Options *options, const char *name, const Program *program);

/* One line of provenance: versions, target, hashes of the model and of the schedule records. The same for the same
 * input. */
const char *build_record(const Options *options, Graph *graph);

#endif
