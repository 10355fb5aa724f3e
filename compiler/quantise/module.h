/* SPDX-License-Identifier: MIT */
/* A module in this process, which runs samples. For processes of their own: it may crash. */
#ifndef RNNCC_QUANTISE_MODULE_H
#define RNNCC_QUANTISE_MODULE_H

#include "quantise/samples.h"
#include "rnncc_loader.h"

typedef struct Module {
  rnncc_library library;
  const rnncc_info *info;
  rnncc_model *model;
  rnncc_context *context;
  rnncc_tensor *inputs, *outputs; /* of the last run */
} Module;

/* fatal_at() if it cannot be loaded. */
Module module_open(Arena *arena, const char *path, int threads);

/* `switches`: the bytes of one more input; NULL: there is none. */
void module_run(const Module *module, const Run *run, const bool *switches);

int64_t tensor_elements(const rnncc_tensor *tensor);

#endif
