/* SPDX-License-Identifier: MIT */
/* Versions of the trained weights, and what applications read and set of them. */
#include "trained.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RNNCC_TRAINS /* else nothing of it is in the module */

/* ---- the model's memory ---- */

/* Pages that nobody writes take no memory. */
static TrainedVersion *new_version(size_t bytes) {
  TrainedVersion *version = calloc(1, sizeof *version + CONTEXT_ALIGNMENT + bytes);
  if (!version) return NULL;
  uintptr_t behind = (uintptr_t)(version + 1);
  version->weights = (float *)(behind + (CONTEXT_ALIGNMENT - behind % CONTEXT_ALIGNMENT) % CONTEXT_ALIGNMENT);
  return version;
}

static bool add_version(struct Trained *trained) {
  TrainedVersion *version = new_version(trained->bytes);
  if (!version) return false;
  version->next = trained->versions;
  trained->versions = version;
  return true;
}

/* With one to spare: while runs read the current version alone, changing weights allocates nothing. */
static bool take_memory(struct Trained *trained, const ModuleTraining *training) {
  trained->guard = fork_guard_create();
  trained->first = calloc(1, 2 * trained->bytes);
  trained->second = trained->first ? trained->first + trained->bytes / sizeof(float) : NULL;
  trained->sums = calloc((size_t)trained->pieces + 1, sizeof *trained->sums);
  trained->numbers = calloc((size_t)n_weights(training) + 1, sizeof *trained->numbers);
  trained->factors = calloc(2 * (size_t)training->info.n_parameters + 1, sizeof *trained->factors);
  trained->steps = calloc((size_t)training->info.n_parameters + 1, sizeof *trained->steps);
  return trained->guard && trained->first && trained->sums && trained->numbers && trained->factors && trained->steps &&
         add_version(trained) && add_version(trained);
}

struct Trained *trained_create(const Module *module) {
  const ModuleTraining *training = &module->training;
  size_t floats = training->trained_bytes / sizeof(float);
  struct Trained *trained = calloc(1, sizeof *trained);
  if (!trained) return NULL;
  *trained = (struct Trained){.floats = (int64_t)floats,
                              .pieces = (int64_t)((floats + PIECE - 1) / PIECE),
                              .bytes = training->bytes,
                              .rule = NO_RULE};
  if (!take_memory(trained, training)) {
    trained_destroy(trained);
    return NULL;
  }
  atomic_init(&trained->current, trained->versions);
  for (int i = 0; i < 2 * training->info.n_parameters; i++) trained->factors[i] = 1;
  for (int i = 0; i < n_weights(training); i++)
    memcpy((unsigned char *)trained->versions->weights + training->places[i], module->weights + training->initials[i],
           weight_bytes(training, i));
  return trained;
}

void trained_destroy(struct Trained *trained) {
  while (trained->versions) {
    TrainedVersion *version = trained->versions;
    trained->versions = version->next;
    free(version);
  }
  free(trained->first);
  free(trained->sums);
  free((void *)trained->numbers);
  free(trained->factors);
  free(trained->steps);
  fork_guard_destroy(trained->guard);
  free(trained);
}

/* ---- versions ---- */

TrainedVersion *spare_weights(struct Trained *trained) {
  for (TrainedVersion *version = trained->versions; version; version = version->next)
    if (version != newest_weights(trained) && !atomic_load_explicit(&version->readers, memory_order_seq_cst))
      return version;
  return add_version(trained) ? trained->versions : NULL;
}

void publish_trained(struct Trained *trained, TrainedVersion *version) {
  version->number = newest_weights(trained)->number + 1;
  atomic_store_explicit(&trained->current, version, memory_order_seq_cst);
}

TrainedVersion *trained_acquire(struct Trained *trained) {
  for (;;) {
    TrainedVersion *version = atomic_load_explicit(&trained->current, memory_order_acquire);
    atomic_fetch_add_explicit(&version->readers, 1, memory_order_seq_cst);
    if (version == atomic_load_explicit(&trained->current, memory_order_seq_cst)) return version;
    trained_release(version);
  }
}

void trained_release(TrainedVersion *version) { atomic_fetch_sub_explicit(&version->readers, 1, memory_order_release); }

const unsigned char *trained_parameters(const TrainedVersion *version) {
  return (const unsigned char *)version->weights;
}

int64_t trained_number(const TrainedVersion *version) { return version->number; }

/* ---- weights by name ---- */

int find_weight_named(const ModuleTraining *training, int count, const char *name) {
  for (int i = 0; name && i < count; i++)
    if (!strcmp(name, weight_at(training, i)->name)) return i;
  return -1;
}

rnncc_status find_trained(const ModuleTraining *training, int count, const char *name, const void *data, size_t bytes,
                          int *index) {
  *index = find_weight_named(training, count, name);
  if (*index < 0) return RNNCC_ERROR_ARGUMENT;
  if (bytes != weight_bytes(training, *index)) return RNNCC_ERROR_SIZE;
  return data ? RNNCC_OK : RNNCC_ERROR_ARGUMENT;
}

rnncc_status training_weights_get(const rnncc_model *model, const char *name, void *data, size_t bytes) {
  if (!model) return RNNCC_ERROR_ARGUMENT;
  const ModuleTraining *training = &model->module->training;
  int index;
  rnncc_status status = find_trained(training, n_weights(training), name, data, bytes, &index);
  if (status) return status;
  TrainedVersion *version = trained_acquire(model->trained);
  memcpy(data, trained_parameters(version) + training->places[index], bytes);
  trained_release(version);
  return RNNCC_OK;
}

/* needs: the lock. A new version, of the weights that have numbers and of the others as they are. */
static rnncc_status set_trained(const rnncc_model *model) {
  const ModuleTraining *training = &model->module->training;
  struct Trained *trained = model->trained;
  TrainedVersion *version = spare_weights(trained);
  if (!version) return RNNCC_ERROR_MEMORY;
  const unsigned char *before = trained_parameters(newest_weights(trained));
  for (int i = 0; i < n_weights(training); i++)
    memcpy((unsigned char *)version->weights + training->places[i],
           trained->numbers[i] ? trained->numbers[i] : before + training->places[i], weight_bytes(training, i));
  publish_trained(trained, version);
  return RNNCC_OK;
}

/* Takes the lock. A thread that was setting weights when this process was forked may have left numbers. */
static void begin_to_set(const rnncc_model *model) {
  trained_lock(model->trained);
  for (int i = 0; i < n_weights(&model->module->training); i++) model->trained->numbers[i] = NULL;
}

rnncc_status training_weights_set(rnncc_model *model, const char *name, const void *data, size_t bytes) {
  if (!model) return RNNCC_ERROR_ARGUMENT;
  const ModuleTraining *training = &model->module->training;
  int index;
  rnncc_status status = find_trained(training, n_weights(training), name, data, bytes, &index);
  if (status) return status;
  begin_to_set(model);
  model->trained->numbers[index] = data;
  status = set_trained(model);
  trained_unlock(model->trained);
  return status;
}

/* ---- several at once ---- */

static rnncc_status update_fail(char *why, size_t room, rnncc_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static rnncc_status update_fail(char *why, size_t room, rnncc_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (why && room) vsnprintf(why, room, format, arguments);
  va_end(arguments);
  return status;
}

/* needs: the lock. */
static rnncc_status take_number(const rnncc_model *model, const rnncc_weight *weight, char *why, size_t room) {
  const ModuleTraining *training = &model->module->training;
  const char *name = weight->name ? weight->name : "";
  int index;
  rnncc_status status = find_trained(training, n_weights(training), weight->name, weight->data, weight->bytes, &index);
  if (status == RNNCC_ERROR_SIZE)
    return update_fail(why, room, status, "weight `%.200s`: expected %zu bytes, found %zu", name,
                       weight_bytes(training, index), weight->bytes);
  if (status) return update_fail(why, room, status, "no weight `%.200s` is trained, or its data is NULL", name);
  if (weight->dtype != RNNCC_F32)
    return update_fail(why, room, RNNCC_ERROR_DTYPE, "weight `%.200s`: expected element type f32", name);
  if (model->trained->numbers[index])
    return update_fail(why, room, RNNCC_ERROR_ARGUMENT, "weight `%.200s` is there twice", name);
  model->trained->numbers[index] = weight->data;
  return RNNCC_OK;
}

rnncc_status training_weights_update(rnncc_model *model, const rnncc_weight *list, size_t n, char *why, size_t room) {
  if (why && room) *why = 0;
  if (!model || (n && !list))
    return update_fail(why, room, RNNCC_ERROR_ARGUMENT, "weights_update: the model, or the list, is NULL");
  if (n && list->struct_size < sizeof *list)
    return update_fail(why, room, RNNCC_ERROR_ARGUMENT, "weights_update: struct_size: expected at least %zu, found %u",
                       sizeof *list, (unsigned)list->struct_size);
  rnncc_status status = RNNCC_OK;
  begin_to_set(model);
  for (size_t i = 0; i < n && !status; i++)
    status = take_number(model, (const rnncc_weight *)((uintptr_t)list + i * list->struct_size), why, room);
  if (!status && n) {
    status = set_trained(model);
    if (status) update_fail(why, room, status, "weights_update: out of memory");
  }
  trained_unlock(model->trained);
  return status;
}
#endif
