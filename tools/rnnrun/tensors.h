/* SPDX-License-Identifier: MIT */
/* The inputs and outputs of a run: made from the command line and checked against the module's description. */
#ifndef RNNRUN_TENSORS_H
#define RNNRUN_TENSORS_H

#include "arguments.h"
#include "rnncc.h"

/* All inputs of the module, in its order. `standard` is the fill of those that are not given; NULL: each must be. */
rnncc_tensor *make_inputs(const rnncc_info *info, const Arguments *arguments, const char *standard);

/* All outputs, each buffer large enough for any run. */
/* Is this file stdout, as /dev/stdout is? */
bool is_stdout(const char *path);

rnncc_tensor *make_outputs(const rnncc_info *info);

/* Writes the outputs that --output names. A file appears whole or not at all. */
void write_outputs(const rnncc_info *info, const Arguments *arguments, const rnncc_tensor *outputs);

void free_tensors(rnncc_tensor *tensors, int count);

/* Fails unless each name is that of one of the tensors, of `size` bytes each; `option` is for the message. */
void check_names(const Assignments *assignments, const char *option, const rnncc_tensor_info *tensors, size_t size,
                 int count);

/* The path of an "@path", which must be one. */
const char *file_path(const char *option, const char *name, const char *value);

#endif
