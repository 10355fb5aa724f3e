/* SPDX-License-Identifier: MIT */
/*
 * What a training goes on from, as bytes: a head, each weight's count of steps, then the elements of all weights, of
 * momentum or the first means, and of the second means, in the order of training_info, then the context's states, among
 * which is what counts the runs for random numbers. Nothing of it depends on the target.
 */
#include <string.h>

#include "trained.h"

#ifdef RNNCC_TRAINS /* else nothing of it is in the module */

typedef struct CheckpointHead {
  char magic[8];
  uint64_t network; /* network_hash() */
  uint64_t bytes;   /* of all */
  uint64_t sum;     /* hash_bytes() of what follows it */
  int32_t rule;
  int32_t unused;
} CheckpointHead;

static const char checkpoint_magic[8] = "rnncc-t2";

enum { MOST_STEPS_BITS = 62 }; /* one more is a number, too */

/* FNV-1a, of words of eight bytes. A product has the high bits of its factors in its high bits alone, where bits of two
 * words may cancel: these are mixed with the low ones. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *at = data;
  for (; bytes;) {
    uint64_t word = 0;
    size_t n = bytes < sizeof word ? bytes : sizeof word;
    memcpy(&word, at, n);
    hash = (hash ^ word) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    at += n;
    bytes -= n;
  }
  return hash;
}

static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325);

static uint64_t hash_tensor(uint64_t hash, const rnncc_tensor_info *info) {
  hash = hash_bytes(hash, info->name, strlen(info->name) + 1);
  hash = hash_bytes(hash, &info->dtype, sizeof info->dtype);
  return hash_bytes(hash, info->max_shape, (size_t)info->rank * sizeof info->max_shape[0]);
}

/* Names and shapes of all that is in a checkpoint. */
static uint64_t network_hash(const Module *module) {
  uint64_t hash = hash_begin;
  for (int i = 0; i < n_weights(&module->training); i++) hash = hash_tensor(hash, weight_at(&module->training, i));
  for (int i = 0; i < module->info.n_states; i++) hash = hash_tensor(hash, module->info.states[i].tensor);
  return hash;
}

/* ---- its parts ---- */

enum { WEIGHTS_ROW, FIRST_ROW, SECOND_ROW, ROWS };

static const char *const row_names[ROWS] = {"weight", "momentum", "mean of squares"};

/* Statistics have no means. */
static int row_weights(const ModuleTraining *training, int row) {
  return row == WEIGHTS_ROW ? n_weights(training) : training->info.n_parameters;
}

static size_t row_bytes(const ModuleTraining *training, int row) {
  size_t bytes = 0;
  for (int i = 0; i < row_weights(training, row); i++) bytes += weight_bytes(training, i);
  return bytes;
}

static size_t counts_bytes(const ModuleTraining *training) {
  return (size_t)training->info.n_parameters * sizeof(int64_t);
}

size_t training_checkpoint_bytes(const rnncc_context *context) {
  if (!context) return 0;
  const Module *module = context->model->module;
  size_t bytes = sizeof(CheckpointHead) + counts_bytes(&module->training);
  for (int row = 0; row < ROWS; row++) bytes += row_bytes(&module->training, row);
  for (int i = 0; i < module->info.n_states; i++) bytes += module->states[i].bytes;
  return bytes;
}

/* Between dense elements and a row of the model. */
static unsigned char *put_row(const ModuleTraining *training, int row, unsigned char *to, const float *from) {
  for (int i = 0; i < row_weights(training, row); i++) {
    memcpy(to, (const unsigned char *)from + training->places[i], weight_bytes(training, i));
    to += weight_bytes(training, i);
  }
  return to;
}

static const unsigned char *take_row(const ModuleTraining *training, int row, float *to, const unsigned char *from) {
  for (int i = 0; i < row_weights(training, row); i++) {
    memcpy((unsigned char *)to + training->places[i], from, weight_bytes(training, i));
    from += weight_bytes(training, i);
  }
  return from;
}

/* ---- what is wrong with one ---- */

/* Of what stands behind sum. */
static uint64_t sum_of(const CheckpointHead *head, const void *data, size_t bytes) {
  uint64_t sum = hash_bytes(hash_begin, &head->rule, sizeof *head - offsetof(CheckpointHead, rule));
  return hash_bytes(sum, (const unsigned char *)data + sizeof *head, bytes - sizeof *head);
}

/* Elements may stand at any address. */
static bool counts_are_good(const ModuleTraining *training, const unsigned char *from) {
  for (size_t at = 0; at < counts_bytes(training); at += sizeof(int64_t)) {
    int64_t count;
    memcpy(&count, from + at, sizeof count);
    if (count < 0 || count >> MOST_STEPS_BITS) return false;
  }
  return true;
}

static bool elements_are_good(const unsigned char *from, size_t bytes, bool negative) {
  for (size_t at = 0; at < bytes; at += sizeof(float)) {
    float x;
    memcpy(&x, from + at, sizeof x);
    if (!__builtin_isfinite(x) || (x < 0 && !negative)) return false;
  }
  return true;
}

static rnncc_status check_head(rnncc_context *context, const CheckpointHead *head, const void *data, size_t bytes) {
  const Module *module = context->model->module;
  size_t due = training_checkpoint_bytes(context);
  if (memcmp(head->magic, checkpoint_magic, sizeof head->magic) != 0)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "checkpoint_set: expected what checkpoint_get() has given");
  if (head->network != network_hash(module))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "checkpoint_set: it is of a network whose weights or states have other names or shapes");
  if (bytes != due)
    return context_fail(context, RNNCC_ERROR_SIZE, "checkpoint_set: expected %zu bytes, found %zu", due, bytes);
  if (head->bytes != due || head->sum != sum_of(head, data, bytes) || head->rule < NO_RULE ||
      head->rule > RNNCC_ADAMW || !counts_are_good(&module->training, (const unsigned char *)data + sizeof *head))
    return context_fail(context, RNNCC_ERROR_VALUE, "checkpoint_set: it is damaged: its sum is another");
  return RNNCC_OK;
}

/* call: whose message it is. */
static rnncc_status check_rows(rnncc_context *context, const char *call, const unsigned char *data) {
  const ModuleTraining *training = &context->model->module->training;
  const unsigned char *at = data + sizeof(CheckpointHead) + counts_bytes(training);
  for (int row = 0; row < ROWS; row++)
    for (int i = 0; i < row_weights(training, row); i++) {
      if (!elements_are_good(at, weight_bytes(training, i), row != SECOND_ROW))
        return context_fail(context, RNNCC_ERROR_VALUE,
                            "%s: the %s of '%.64s' has a number that is not finite, or negative where none can be",
                            call, row_names[row], weight_at(training, i)->name);
      at += weight_bytes(training, i);
    }
  return RNNCC_OK;
}

static rnncc_status check_checkpoint(rnncc_context *context, CheckpointHead *head, const void *data, size_t bytes) {
  if (!data) return context_fail(context, RNNCC_ERROR_ARGUMENT, "checkpoint_set: data is NULL");
  if (bytes < sizeof *head)
    return context_fail(context, RNNCC_ERROR_SIZE, "checkpoint_set: expected %zu bytes, found %zu",
                        training_checkpoint_bytes(context), bytes);
  memcpy(head, data, sizeof *head);
  rnncc_status status = check_head(context, head, data, bytes);
  return status ? status : check_rows(context, "checkpoint_set", data);
}

/* ---- from a model, and to it ---- */

/* needs: the lock. Returns the end of what it has written. */
static unsigned char *put_model(const struct Trained *trained, const ModuleTraining *training, const float *weights,
                                unsigned char *at) {
  memcpy(at, trained->steps, counts_bytes(training));
  at = put_row(training, WEIGHTS_ROW, at + counts_bytes(training), weights);
  at = put_row(training, FIRST_ROW, at, trained->first);
  return put_row(training, SECOND_ROW, at, trained->second);
}

/* needs: the lock. */
static const unsigned char *take_model(struct Trained *trained, const ModuleTraining *training, float *weights,
                                       const unsigned char *at) {
  memcpy(trained->steps, at, counts_bytes(training));
  at = take_row(training, WEIGHTS_ROW, weights, at + counts_bytes(training));
  at = take_row(training, FIRST_ROW, trained->first, at);
  return take_row(training, SECOND_ROW, trained->second, at);
}

rnncc_status training_checkpoint_get(rnncc_context *context, void *data, size_t bytes) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  size_t due = training_checkpoint_bytes(context);
  if (!data) return context_fail(context, RNNCC_ERROR_ARGUMENT, "checkpoint_get: data is NULL");
  if (bytes != due)
    return context_fail(context, RNNCC_ERROR_SIZE, "checkpoint_get: %zu bytes given, it takes %zu", bytes, due);
  const Module *module = context->model->module;
  struct Trained *trained = context->model->trained;
  CheckpointHead head = {.network = network_hash(module), .bytes = due};
  memcpy(head.magic, checkpoint_magic, sizeof head.magic);
  memset(data, 0, sizeof head); /* no checkpoint, should its numbers be refused */
  trained_lock(trained);
  head.rule = trained->rule;
  unsigned char *at =
      put_model(trained, &module->training, newest_weights(trained)->weights, (unsigned char *)data + sizeof head);
  trained_unlock(trained);
  rnncc_status status = check_rows(context, "checkpoint_get", data);
  if (status) return status;
  for (int i = 0; i < module->info.n_states; at += module->states[i++].bytes)
    memcpy(at, context->states[i], module->states[i].bytes);
  head.sum = sum_of(&head, data, due);
  memcpy(data, &head, sizeof head);
  return RNNCC_OK;
}

rnncc_status training_checkpoint_set(rnncc_context *context, const void *data, size_t bytes) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  CheckpointHead head;
  rnncc_status status = check_checkpoint(context, &head, data, bytes);
  if (status) return status;
  const Module *module = context->model->module;
  struct Trained *trained = context->model->trained;
  const unsigned char *at = (const unsigned char *)data + sizeof head;
  trained_lock(trained);
  TrainedVersion *version = spare_weights(trained);
  if (version) {
    at = take_model(trained, &module->training, version->weights, at);
    trained->rule = head.rule;
    publish_trained(trained, version);
  }
  trained_unlock(trained);
  if (!version) return context_fail(context, RNNCC_ERROR_MEMORY, "checkpoint_set: out of memory");
  for (int i = 0; i < module->info.n_states; at += module->states[i++].bytes)
    memcpy(context->states[i], at, module->states[i].bytes);
  context->ran = NOTHING_RAN;
  context->keeps = false;
  return RNNCC_OK;
}
#endif
