/* SPDX-License-Identifier: MIT */
/* A loaded module with one model and one context. */
#ifndef RNNRUN_SESSION_H
#define RNNRUN_SESSION_H

#include "rnncc_loader.h"

typedef struct Session {
  const char *path;
  rnncc_library library;
  const rnncc_api *api; /* the library's, or that of another network of it */
  int share_all;        /* as of rnncc_options; for session_start */
  int check_weights;    /* the same */
  rnncc_model *model;
  rnncc_context *context;
} Session;

/* Loads the module: path and api are set. Fails with EXIT_ENVIRONMENT, saying why. */
Session session_load(const char *path);
/* Makes the model and the context. threads 0: the module decides. */
void session_start(Session *session, int threads);
void session_run(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs);
void session_close(Session *session);

/* Fails with the exit code that fits the status, and the context's own words, unless it is RNNCC_OK. */
void session_check(const Session *session, rnncc_status status, const char *what);

#endif
