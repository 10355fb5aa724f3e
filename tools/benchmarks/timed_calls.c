/* SPDX-License-Identifier: MIT */
/*
 * The loops in which tools/bench times a module and its peers: from Python, a call costs some microseconds more, which
 * is a good part of a short sequence. Each run is timed by itself; the clock costs some 20 ns. A function returns 0, or
 * what the first failing call returned, as a number.
 *
 * benchmarks/contestants.py mirrors the structures.
 */
#include <stdint.h>
#include <time.h>

#include "rnncc_loader.h"

typedef struct ModuleCall {
  rnncc_library library;
  rnncc_model *model;
  rnncc_context *context;
  const rnncc_tensor *inputs;
  size_t n_inputs;
  rnncc_tensor *outputs;
  size_t n_outputs;
} ModuleCall;

/* OrtApi's Run: returns NULL or a status. Outputs that are not NULL are written in place. */
typedef struct OrtCall {
  void *(*run)(void *session, const void *options, const char *const *input_names, const void *const *inputs,
               size_t n_inputs, const char *const *output_names, size_t n_outputs, void **outputs);
  void *session;
  const char *const *input_names;
  const void *const *inputs;
  size_t n_inputs;
  const char *const *output_names;
  void **outputs;
  size_t n_outputs;
} OrtCall;

/* OpenVINO's ov_infer_request_infer: its tensors are bound to the request. */
typedef struct OpenVinoCall {
  int (*infer)(void *request);
  void *request;
} OpenVinoCall;

/* Fills in library, model and context. On failure none is left open, and `error` says why. */
intptr_t open_module(ModuleCall *call, const char *path, int threads, char *error, size_t error_bytes) {
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  const char *why = NULL;
  rnncc_status status = rnncc_load(path, &call->library, error, error_bytes);
  if (status) return status;
  const rnncc_api *api = call->library.api;
  status = api->model_create(&options, &call->model, &why);
  if (!status) status = api->context_create(call->model, NULL, 0, &call->context, &why);
  if (status) {
    snprintf(error, error_bytes, "%s: %s", path, why);
    api->model_destroy(call->model);
    rnncc_unload(&call->library);
  }
  return status;
}

void close_module(ModuleCall *call) {
  call->library.api->context_destroy(call->context);
  call->library.api->model_destroy(call->model);
  rnncc_unload(&call->library);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static intptr_t call_module(const void *what) {
  const ModuleCall *call = what;
  return call->library.api->run(call->context, call->inputs, call->n_inputs, call->outputs, call->n_outputs);
}

static intptr_t call_ort(const void *what) {
  const OrtCall *call = what;
  return (intptr_t)call->run(call->session, NULL, call->input_names, call->inputs, call->n_inputs, call->output_names,
                             call->n_outputs, call->outputs);
}

static intptr_t call_openvino(const void *what) {
  const OpenVinoCall *call = what;
  return call->infer(call->request);
}

static intptr_t time_calls(intptr_t (*call)(const void *), const void *what, int runs, double *seconds) {
  for (int run = 0; run < runs; run++) {
    double start = now();
    intptr_t status = call(what);
    seconds[run] = now() - start;
    if (status) return status;
  }
  return 0;
}

intptr_t time_module(const ModuleCall *call, int runs, double *seconds) {
  return time_calls(call_module, call, runs, seconds);
}

intptr_t time_ort(const OrtCall *call, int runs, double *seconds) { return time_calls(call_ort, call, runs, seconds); }

intptr_t time_openvino(const OpenVinoCall *call, int runs, double *seconds) {
  return time_calls(call_openvino, call, runs, seconds);
}
