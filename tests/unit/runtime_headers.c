/* SPDX-License-Identifier: MIT */
/* The headers for applications: each must compile alone as C99 and as C++11, without a warning. */
#include "rnncc_loader.h"

static inline int load_and_run(const char *path) {
  char error[256];
  rnncc_library library;
  rnncc_model *model;
  rnncc_context *context;
  rnncc_status status = rnncc_load(path, &library, error, sizeof error);
  if (status != RNNCC_OK) return 1;
  library.api->model_create(NULL, &model, NULL);
  library.api->context_create(model, NULL, 0, &context, NULL);
  library.api->run(context, NULL, 0, NULL, 0);
  library.api->context_destroy(context);
  library.api->model_destroy(model);
  rnncc_unload(&library);
  return 0;
}

int uses_the_loader(const char *path);
int uses_the_loader(const char *path) { return load_and_run(path); }
