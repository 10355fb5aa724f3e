/* SPDX-License-Identifier: MIT */
/*
 * Any module from C: inputs that are made up, and what one thread computes of them, to compare with. Programs that
 * include this end with a message at the first mistake.
 */
#ifndef TESTS_MODULE_RUN_H
#define TESTS_MODULE_RUN_H

#include <stdlib.h>
#include <string.h>

#include "module_tensors.h"

/* Floats in [-1, 1) and ones; the same in each call. */
static void make_up(rnncc_tensor *tensor) {
  uint32_t random = 1;
  size_t size = rnncc_dtype_size(tensor->dtype);
  for (size_t i = 0; i < tensor->bytes / size; i++) {
    random = random * 1664525u + 1013904223u;
    float value = (float)(random >> 8) / (1 << 23) - 1;
    unsigned char *at = (unsigned char *)tensor->data + i * size;
    if (tensor->dtype == RNNCC_F32)
      memcpy(at, &value, sizeof value);
    else
      at[0] = 1; /* the other bytes are 0: a small integer */
  }
}

/* One stream of runs. */
typedef struct Stream {
  const rnncc_api *api;
  rnncc_context *context;
  rnncc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  size_t room[MOST_TENSORS]; /* of each output */
} Stream;

static Stream stream_new(const rnncc_api *api, rnncc_model *model, bool at_end) {
  Stream stream = {.api = api};
  const rnncc_info *info = api->info;
  const char *why = NULL;
  if (info->n_inputs > MOST_TENSORS || info->n_outputs > MOST_TENSORS) fail("too many tensors");
  for (int i = 0; i < info->n_inputs; i++) {
    stream.inputs[i] = tensor_of(info, rnncc_input_at(info, i), false, at_end);
    make_up(&stream.inputs[i]);
  }
  for (int i = 0; i < info->n_outputs; i++) {
    stream.outputs[i] = tensor_of(info, rnncc_output_at(info, i), true, at_end);
    stream.room[i] = stream.outputs[i].bytes;
  }
  if (api->context_create(model, NULL, 0, &stream.context, &why)) fail("context_create: %s", why);
  return stream;
}

static void stream_end(Stream *stream) {
  stream->api->context_destroy(stream->context);
  for (int i = 0; i < stream->api->info->n_inputs; i++) forget_pages(stream->inputs[i].data, stream->inputs[i].bytes);
  for (int i = 0; i < stream->api->info->n_outputs; i++) forget_pages(stream->outputs[i].data, stream->room[i]);
}

static rnncc_model *model_new(const rnncc_api *api, rnncc_options options) {
  rnncc_model *model;
  const char *why = NULL;
  options.struct_size = sizeof options;
  options.share_all = 1;
  if (api->model_create(&options, &model, &why)) fail("model_create: %s", why);
  return model;
}

static void run(Stream *stream) {
  const rnncc_info *info = stream->api->info;
  for (int i = 0; i < info->n_outputs; i++) memset(stream->outputs[i].data, 0x5a, stream->room[i]);
  if (stream->api->run(stream->context, stream->inputs, (size_t)info->n_inputs, stream->outputs,
                       (size_t)info->n_outputs))
    fail("%s: %s", info->name, stream->api->last_error(stream->context));
}

/* Of all bytes of the outputs, those behind the run's shapes, too, which a run leaves as they were. */
static uint64_t bits(const Stream *stream) {
  uint64_t sum = 14695981039346656037u;
  for (int i = 0; i < stream->api->info->n_outputs; i++) {
    const unsigned char *bytes = stream->outputs[i].data;
    for (size_t k = 0; k < stream->room[i]; k++) sum = (sum ^ bytes[k]) * 1099511628211u;
  }
  return sum;
}

/* A module, and what one thread computes. */
typedef struct Subject {
  rnncc_library library;
  const rnncc_api *api;
  uint64_t serial;
} Subject;

static Subject subject_load(const char *path) {
  Subject it;
  char why[256];
  if (rnncc_load(path, &it.library, why, sizeof why)) fail("%s", why);
  it.api = it.library.api;
  rnncc_model *model = model_new(it.api, (rnncc_options){.threads = 1});
  Stream stream = stream_new(it.api, model, true);
  run(&stream);
  it.serial = bits(&stream);
  stream_end(&stream);
  it.api->model_destroy(model);
  return it;
}

static void expect_serial(const Subject *subject, Stream *stream, int runs, const char *where) {
  for (int i = 0; i < runs; i++) {
    run(stream);
    if (bits(stream) != subject->serial) fail("%s: other bits than one thread's: %s", subject->api->info->name, where);
  }
}

/* Some runs of a model of its own. */
static void check(const Subject *subject, rnncc_options options, int runs, const char *where) {
  rnncc_model *model = model_new(subject->api, options);
  Stream stream = stream_new(subject->api, model, runs % 2);
  expect_serial(subject, &stream, runs, where);
  stream_end(&stream);
  subject->api->model_destroy(model);
}

#endif
