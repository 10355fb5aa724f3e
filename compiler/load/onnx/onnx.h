/* SPDX-License-Identifier: MIT */
/* ONNX models. The graph has the meaning of the newest opset, whatever the file's. */
#ifndef RNNCC_ONNX_H
#define RNNCC_ONNX_H

#include "load/settings.h"
#include "support/files.h"

/* Unsorted, with the model's hash. `settings` may be NULL. */
Graph *load_onnx_model(Arena *arena, const char *path, const ModelSettings *settings);
/* The same from memory; `path` is for messages, and for the folder of external data. After errors, which
 * stop_on_errors() will find, nodes with errors are left out, and infer_shapes() can tell what is wrong with others. */
Graph *read_onnx_model(Arena *arena, const char *path, FileBytes bytes, const ModelSettings *settings);

#endif
