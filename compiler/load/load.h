/* SPDX-License-Identifier: MIT */
/* The front end: a model file becomes a Graph. Each problem is told with file and JSON path; then the compiler stops.
 */
#ifndef RNNCC_LOAD_H
#define RNNCC_LOAD_H

#include "load/settings.h"

/* By the file's suffix: .onnx or .json. `settings`: the command line's, NULL for none. Returns only with a well-formed
 * graph: names resolved, acyclic, topologically sorted, arity and attributes checked against the op table, weights read
 * and checked (ranges, sha256). */
Graph *load_model(Arena *arena, const char *path, const ModelSettings *settings);

/* The graph as our JSON plus safetensors, for --emit=graph: writes PREFIX.json and PREFIX.safetensors texts. */
void save_model(Arena *arena, Graph *graph, const char *json_path);

#endif
