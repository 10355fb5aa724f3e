/* SPDX-License-Identifier: MIT */
/* What follows any reader, and the other direction. */
#ifndef RNNCC_LOAD_H
#define RNNCC_LOAD_H

#include "load/settings.h"

/* After a model is read: its nodes in order, what the settings say of states, dense ids. Stops on errors. */
Graph *model_complete(Graph *graph, const ModelSettings *settings);

/* For --emit=graph: writes the graph as PREFIX.json and PREFIX.safetensors. */
void save_model(Arena *arena, Graph *graph, const char *json_path);

#endif
