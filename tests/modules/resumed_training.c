/* SPDX-License-Identifier: MIT */
/*
 * resumed_training MODULE THREADS RULE FROM TO [BEFORE [AFTER]]: steps FROM to TO of a training, each on a batch of its
 * own number, from the checkpoint in the file BEFORE, or where that is "-" from the beginning. Prints the bits of each
 * loss, and at the end of all weights. AFTER: a file for a checkpoint.
 */
#include <stdlib.h>
#include <string.h>

#include "module_tensors.h"

typedef struct Training {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
  rnncc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
} Training;

static void check(const Training *t, rnncc_status status) {
  if (status) fail("%s: %s", rnncc_status_name(status), t->api->last_error(t->context));
}

static Training begin(const char *path, int threads) {
  rnncc_library library;
  char why[256];
  if (rnncc_load(path, &library, why, sizeof why)) fail("%s", why);
  Training t = {.api = library.api};
  const rnncc_options options = {.struct_size = sizeof options, .threads = threads, .share_all = 1};
  if (t.api->model_create(&options, &t.model, NULL) || t.api->context_create(t.model, NULL, 0, &t.context, NULL))
    fail("no memory");
  for (int i = 0; i < t.api->info->n_inputs; i++)
    t.inputs[i] = tensor_of(t.api->info, rnncc_input_at(t.api->info, i), false, true);
  for (int i = 0; i < t.api->info->n_outputs; i++)
    t.outputs[i] = tensor_of(t.api->info, rnncc_output_at(t.api->info, i), true, true);
  return t;
}

/* Numbers of the step's own, labels 0 and 1. */
static void fill(const rnncc_tensor *tensor, uint32_t step) {
  uint32_t draw = 2654435761u * (step + 1);
  for (size_t i = 0; i < tensor->bytes / rnncc_dtype_size(tensor->dtype); i++) {
    draw = draw * 1664525u + 1013904223u;
    if (tensor->dtype == RNNCC_I64)
      ((int64_t *)tensor->data)[i] = draw >> 31;
    else
      ((float *)tensor->data)[i] = (float)(draw >> 8) / 8388608 - 1;
  }
}

static void step(Training *t, uint32_t number, rnncc_rule rule) {
  const rnncc_training *training = t->api->training;
  const rnncc_optimizer by = {.struct_size = sizeof by,
                              .rule = rule,
                              .learning_rate = 0.02f / (float)(number + 1), /* a schedule */
                              .momentum = 0.9f,
                              .beta1 = 0.9f,
                              .beta2 = 0.999f,
                              .epsilon = 1e-8f,
                              .weight_decay = 0.01f,
                              .max_norm = 1};
  for (int i = 0; i < t->api->info->n_inputs; i++) fill(&t->inputs[i], number);
  check(t, t->api->run(t->context, t->inputs, (size_t)t->api->info->n_inputs, t->outputs,
                       (size_t)t->api->info->n_outputs));
  check(t, training->backward(t->context));
  check(t, training->step(t->context, &by));
  printf("%a\n", (double)*(const float *)t->outputs[training->info->loss].data);
}

static void load(const Training *t, const char *path) {
  size_t bytes = t->api->training->checkpoint_bytes(t->context);
  void *data = malloc(bytes);
  FILE *file = fopen(path, "rb");
  if (!data || !file || fread(data, 1, bytes, file) != bytes) fail("%s: cannot read it", path);
  fclose(file);
  check(t, t->api->training->checkpoint_set(t->context, data, bytes));
  free(data);
}

static void save(const Training *t, const char *path) {
  size_t bytes = t->api->training->checkpoint_bytes(t->context);
  void *data = malloc(bytes);
  FILE *file = fopen(path, "wb");
  if (!data || !file) fail("%s: cannot write it", path);
  check(t, t->api->training->checkpoint_get(t->context, data, bytes));
  if (fwrite(data, 1, bytes, file) != bytes || fclose(file)) fail("%s: cannot write it", path);
  free(data);
}

static void print_weights(const Training *t) {
  const rnncc_training_info *info = t->api->training->info;
  for (int i = 0; i < info->n_parameters; i++) {
    const rnncc_tensor_info *described = rnncc_parameter_at(info, i);
    rnncc_tensor of = tensor_of(t->api->info, described, true, true);
    if (t->api->training->weights_get(t->model, described->name, of.data, of.bytes)) fail("%s", described->name);
    printf("%s", described->name);
    for (size_t k = 0; k < of.bytes / sizeof(uint32_t); k++) printf(" %x", ((const uint32_t *)of.data)[k]);
    puts("");
  }
}

int main(int argc, char **argv) {
  if (argc < 6) fail("usage: resumed_training MODULE THREADS RULE FROM TO [BEFORE [AFTER]]");
  Training t = begin(argv[1], atoi(argv[2]));
  if (argc > 6 && strcmp(argv[6], "-") != 0) load(&t, argv[6]);
  for (int i = atoi(argv[4]); i < atoi(argv[5]); i++) step(&t, (uint32_t)i, (rnncc_rule)atoi(argv[3]));
  if (argc > 7) save(&t, argv[7]);
  print_weights(&t);
  t.api->context_destroy(t.context);
  t.api->model_destroy(t.model);
  return 0;
}
