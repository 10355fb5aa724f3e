/* SPDX-License-Identifier: MIT */
/* The front end: a model file becomes a Graph. Reports every error with file and JSON path, then stops the compiler. */
#ifndef RNNCC_LOAD_MODEL_H
#define RNNCC_LOAD_MODEL_H

#include "load/settings.h"

/* The format is the file's suffix: .onnx or .json. `settings`: the command line's, NULL for none. Returns a well-formed
 * graph: names resolved, acyclic, topologically sorted, arity and attributes checked against the op table, weights read
 * and checked (ranges, sha256). */
Graph *load_model(Arena *arena, const char *path, const ModelSettings *settings);

#endif
