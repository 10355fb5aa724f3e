/* SPDX-License-Identifier: MIT */
/*
 * What stands in place of pool.c, model.c, options.c, shared_pool.c, message.c, profile.c and the files that these
 * need, for devices without threads, a heap or an operating system: a run has one worker, the caller, and all memory is
 * the caller's. There are no messages and no profile.
 */
#include "context.h"
#include "indirect.h"

/* Immutable, so that one of each network is enough: an edge library is of one target. */
#define MODEL(name, first) {.module = &(name)},
static rnncc_model models[] = {RNNCC_MODULES(MODEL)};

rnncc_status model_create(const Module *module, const rnncc_options *given, rnncc_model **out, const char **why) {
  (void)given;
  if (why) *why = out ? NULL : "";
  if (!out) return RNNCC_ERROR_ARGUMENT;
  *out = models;
  while ((*out)->module != module) ++*out;
  return RNNCC_OK;
}

void model_destroy(rnncc_model *model) { (void)model; }

rnncc_status shared_pool_create(const rnncc_options *options, rnncc_pool **out, const char **why) {
  (void)options;
  if (out) *out = NULL;
  return refused(RNNCC_ERROR_UNSUPPORTED, "", why);
}

void shared_pool_destroy(rnncc_pool *pool) { (void)pool; }

rnncc_status model_weights_set(rnncc_model *model, const rnncc_weight *list, size_t n, char *why, size_t room) {
  (void)model, (void)list, (void)n;
  if (why && room) *why = 0;
  return RNNCC_ERROR_UNSUPPORTED;
}

rnncc_status model_weights_get(rnncc_model *model, const char *name, void *data, size_t bytes, char *why, size_t room) {
  (void)model, (void)name, (void)data, (void)bytes;
  if (why && room) *why = 0;
  return RNNCC_ERROR_UNSUPPORTED;
}

int32_t model_threads(const rnncc_model *model) { return model ? 1 : 0; }
int32_t model_narrowed(const rnncc_model *model) {
  (void)model;
  return 0;
}

void pool_run(Pool *pool, Turn turn, PoolBody *body, void *arg) {
  (void)pool, (void)turn;
  Team alone = {.rank = 0, .size = 1};
  indirect_body(body, arg, &alone);
}

void *memory_take(size_t bytes) {
  (void)bytes;
  return NULL;
}

void memory_give(void *memory) { (void)memory; }

const char *context_last_error(const rnncc_context *context) {
  (void)context;
  return "";
}

void profile_begin(const Run *run) { (void)run; }
void profile_enter(Team *team) { (void)team; }

rnncc_status context_profile(rnncc_context *context, int32_t on, const rnncc_profile_entry **entries, size_t *n) {
  (void)context, (void)on, (void)entries, (void)n;
  return RNNCC_ERROR_UNSUPPORTED;
}

rnncc_status context_trace(rnncc_context *context, const rnncc_trace *trace) {
  (void)context, (void)trace;
  return RNNCC_ERROR_UNSUPPORTED;
}
