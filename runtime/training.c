/* SPDX-License-Identifier: MIT */
/*
 * Training: the model's weights, gradients, and steps of optimisers.
 *
 * Weights, gradients and what optimisers keep have one layout, with zeros between tensors, and are seen as rows of
 * floats. A row is cut into pieces of one length: workers share the pieces, and sums are of pieces, in their order.
 */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "float_mode.h"
#include "indirect.h"
#include "optimizer.h"

#ifdef RNNCC_TRAINS /* else nothing of it is in the module */

enum { PIECE = 8192 }; /* floats: two of each row are in a core's L1 cache */

struct Trained {
  int64_t floats, pieces; /* of a row, without the statistics, which stand behind the weights that are trained */
  float *weights, *first, *second;
  double *sums;    /* [pieces] */
  int64_t steps;   /* since the optimiser began */
  int64_t version; /* how often the weights have changed */
};

/* Trained weights, then statistics. */
static int n_weights(const ModuleTraining *training) {
  return training->info.n_parameters + training->info.n_statistics;
}

static const rnncc_tensor_info *weight_at(const ModuleTraining *training, int i) {
  int trained = training->info.n_parameters;
  return i < trained ? &training->info.parameters[i] : &training->info.statistics[i - trained];
}

/* ---- the model's memory ---- */

struct Trained *trained_create(const Module *module) {
  const ModuleTraining *training = &module->training;
  size_t bytes = training->bytes, floats = training->trained_bytes / sizeof(float);
  size_t pieces = (floats + PIECE - 1) / PIECE;
  struct Trained *trained = calloc(1, sizeof *trained);
  /* Pages that no optimiser touches take no memory. */
  unsigned char *rows = calloc(1, 3 * bytes + CONTEXT_ALIGNMENT + pieces * sizeof(double));
  if (!trained || !rows) {
    free(trained);
    free(rows);
    return NULL;
  }
  unsigned char *first = rows + CONTEXT_ALIGNMENT - (uintptr_t)rows % CONTEXT_ALIGNMENT;
  first[-1] = (unsigned char)(first - rows);
  *trained = (struct Trained){
      .floats = (int64_t)floats,
      .pieces = (int64_t)pieces,
      .weights = (float *)(void *)first,
      .first = (float *)(void *)(first + bytes),
      .second = (float *)(void *)(first + 2 * bytes),
      .sums = (double *)(void *)(first + 3 * bytes),
  };
  for (int i = 0; i < n_weights(training); i++) {
    const rnncc_tensor_info *info = weight_at(training, i);
    memcpy(first + training->places[i], module->weights + training->initials[i],
           shape_elements(info->shape, info->rank) * sizeof(float));
  }
  return trained;
}

void trained_destroy(struct Trained *trained) {
  unsigned char *first = (unsigned char *)trained->weights;
  free(first - first[-1]);
  free(trained);
}

const unsigned char *trained_parameters(const struct Trained *trained) {
  return (const unsigned char *)trained->weights;
}

int64_t trained_version(const struct Trained *trained) { return trained->version; }

/* ---- tensors by name ---- */

/* The place in a row of one of the first `count` weights, in bytes. */
static rnncc_status find_of(const ModuleTraining *training, int count, const char *name, const void *data, size_t bytes,
                            size_t *place) {
  for (int i = 0; name && i < count; i++) {
    const rnncc_tensor_info *info = weight_at(training, i);
    if (strcmp(name, info->name) != 0) continue;
    *place = training->places[i];
    if (bytes != shape_elements(info->shape, info->rank) * sizeof(float)) return RNNCC_ERROR_SIZE;
    return data ? RNNCC_OK : RNNCC_ERROR_ARGUMENT;
  }
  return RNNCC_ERROR_ARGUMENT;
}

static rnncc_status find(const Module *module, const char *name, const void *data, size_t bytes, size_t *place) {
  return find_of(&module->training, n_weights(&module->training), name, data, bytes, place);
}

rnncc_status training_weights_get(const rnncc_model *model, const char *name, void *data, size_t bytes) {
  size_t place;
  rnncc_status status = model ? find(model->module, name, data, bytes, &place) : RNNCC_ERROR_ARGUMENT;
  if (!status) memcpy(data, trained_parameters(model->trained) + place, bytes);
  return status;
}

rnncc_status training_weights_set(rnncc_model *model, const char *name, const void *data, size_t bytes) {
  size_t place;
  rnncc_status status = model ? find(model->module, name, data, bytes, &place) : RNNCC_ERROR_ARGUMENT;
  if (status) return status;
  memcpy((unsigned char *)model->trained->weights + place, data, bytes);
  model->trained->version++;
  return RNNCC_OK;
}

rnncc_status training_gradient(rnncc_context *context, const char *name, void *data, size_t bytes) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "there are no gradients: expected a backward() before");
  size_t place;
  const ModuleTraining *training = &context->model->module->training;
  rnncc_status status = find_of(training, training->info.n_parameters, name, data, bytes, &place);
  if (status == RNNCC_ERROR_SIZE)
    return context_fail(context, status, "gradient of '%.64s': %zu bytes given, it has another size", name, bytes);
  if (status) return context_fail(context, status, "no weight '%.64s' is trained, or data is NULL", name ? name : "");
  memcpy(data, context->gradients + place, bytes);
  return RNNCC_OK;
}

/* ---- backwards ---- */

static bool loss_is_outside(const rnncc_context *context) { return context->model->module->training.info.loss < 0; }

/* Is there a run to go back through? */
static rnncc_status check_ran(rnncc_context *context) {
  if (context->ran != FORWARD_RAN) /* backward() writes over what the run has left */
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "backward: expected a run() that succeeded before it, and one "
                        "for each backward()");
  if (context->ran_on == trained_version(context->model->trained)) return RNNCC_OK;
  context->ran = NOTHING_RAN;
  return context_fail(context, RNNCC_ERROR_ARGUMENT,
                      "backward: the model's weights have changed since the run(); expected a run() on them");
}

static rnncc_status go_back(rnncc_context *context) {
  context->ran = NOTHING_RAN;
  rnncc_status status = run_part(context, context->model->module->training.backward);
  if (status) return context_fail(context, status, "backward: an index computed in the model is out of range");
  context->ran = BACKWARD_RAN;
  return RNNCC_OK;
}

rnncc_status training_backward(rnncc_context *context) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (loss_is_outside(context))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "backward: the loss is outside of the module; expected backward_from()");
  rnncc_status status = check_ran(context);
  return status ? status : go_back(context);
}

rnncc_status training_backward_from(rnncc_context *context, const rnncc_tensor *output_gradients,
                                    size_t n_output_gradients, rnncc_tensor *input_gradients,
                                    size_t n_input_gradients) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (!loss_is_outside(context))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "backward_from: the loss is an output of the module; expected backward()");
  rnncc_status status = check_ran(context);
  if (!status)
    status = backward_check(context, output_gradients, n_output_gradients, input_gradients, n_input_gradients);
  if (!status) status = go_back(context);
  for (size_t i = 0; !status && i < n_input_gradients; i++)
    deliver_staged(context, context->model->module->info.n_outputs + (int)i, tensor_at(input_gradients, (int)i));
  return status;
}

/* ---- steps ---- */

typedef struct Work {
  struct Trained *trained;
  const float *gradients;
  const Update *update;
} Work;

static int64_t piece_end(const struct Trained *trained, int64_t piece) {
  int64_t end = (piece + 1) * PIECE;
  return end < trained->floats ? end : trained->floats;
}

static void sum_squares(void *arg, Team *team) {
  const Work *work = arg;
  int64_t begin, end;
  team_share(team, work->trained->pieces, &begin, &end);
  for (int64_t p = begin; p < end; p++) {
    int64_t first = p * PIECE;
    work->trained->sums[p] = squares_of(work->gradients + first, piece_end(work->trained, p) - first);
  }
}

static void update_weights(void *arg, Team *team) {
  const Work *work = arg;
  int64_t begin, end;
  team_share(team, work->trained->pieces, &begin, &end);
  FloatMode mode = float_mode_enter();
  for (int64_t p = begin; p < end; p++) {
    if (work->update->by.rule == RNNCC_SGD)
      sgd_update(work->update, p * PIECE, piece_end(work->trained, p));
    else
      adam_update(work->update, p * PIECE, piece_end(work->trained, p));
  }
  float_mode_leave(mode);
}

/* On the workers if there is much to do. */
static void share(rnncc_context *context, PoolBody *body, Work *work) {
  enum { LEAST_PIECES = 8 };
  if (work->trained->pieces >= LEAST_PIECES)
    pool_run(context->model->pool, context->model->turn, body, work);
  else
    indirect_body(body, work, &(Team){.rank = 0, .size = 1});
}

static double sum_of_squares(rnncc_context *context) {
  Work work = {.trained = context->model->trained, .gradients = (const float *)(const void *)context->gradients};
  double sum = 0;
  share(context, sum_squares, &work);
  for (int64_t p = 0; p < work.trained->pieces; p++) sum += work.trained->sums[p];
  return sum;
}

/* Names the first weight whose gradient, or next value, is not finite. */
static rnncc_status not_finite(rnncc_context *context) {
  const ModuleTraining *training = &context->model->module->training;
  for (int i = 0; i < n_weights(training); i++) {
    const rnncc_tensor_info *info = weight_at(training, i);
    const float *gradient = (const float *)(const void *)(context->gradients + training->places[i]);
    if (!__builtin_isfinite(squares_of(gradient, (int64_t)shape_elements(info->shape, info->rank))))
      return context_fail(context, RNNCC_ERROR_VALUE,
                          "step: the %s of '%.64s' has a number that is not finite; the weights are as before",
                          i < training->info.n_parameters ? "gradient" : "next value", info->name);
  }
  return context_fail(context, RNNCC_ERROR_VALUE, "step: the gradients are not finite");
}

/* ---- statistics ---- */

static size_t statistics_bytes(const ModuleTraining *training) { return training->bytes - training->trained_bytes; }

static bool statistics_are_finite(const rnncc_context *context) {
  const ModuleTraining *training = &context->model->module->training;
  const float *next = (const float *)(const void *)(context->gradients + training->trained_bytes);
  return __builtin_isfinite(squares_of(next, (int64_t)(statistics_bytes(training) / sizeof(float))));
}

static void take_statistics(rnncc_context *context) {
  const ModuleTraining *training = &context->model->module->training;
  memcpy((unsigned char *)context->model->trained->weights + training->trained_bytes,
         context->gradients + training->trained_bytes, statistics_bytes(training));
}

/* ---- the rules ---- */

static bool is_below(float x, float bound) { return x >= 0 && x < bound; }

/* The caller's, whose header may be older. */
static bool read_optimizer(const rnncc_optimizer *given, rnncc_optimizer *own) {
  const size_t least = offsetof(rnncc_optimizer, nesterov) + sizeof given->nesterov;
  if (!given || given->struct_size < least) return false;
  memcpy(own, given, least);
  bool adam = own->rule == RNNCC_ADAM || own->rule == RNNCC_ADAMW;
  if (own->rule != RNNCC_SGD && !adam) return false;
  if (!is_below(own->learning_rate, __builtin_inff()) || !is_below(own->weight_decay, __builtin_inff())) return false;
  if (own->max_norm != own->max_norm) return false;
  if (!adam) return is_below(own->momentum, __builtin_inff());
  return is_below(own->beta1, 1) && is_below(own->beta2, 1) && is_below(own->epsilon, __builtin_inff());
}

/* By squaring: a module has no libm. */
static double power(double x, int64_t n) {
  double result = 1;
  for (; n; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

static float clip_scale(double norm, float most) {
  double scale = most > 0 ? (double)most / (norm + 1e-6) : 1;
  return scale < 1 ? (float)scale : 1;
}

rnncc_status training_step(rnncc_context *context, const rnncc_optimizer *optimizer) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  Update update;
  if (!read_optimizer(optimizer, &update.by))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "step: expected a rule that is known, numbers that are finite and not negative, and betas "
                        "below 1");
  if (context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "step: expected a backward() before it");
  double squares = sum_of_squares(context);
  if (!__builtin_isfinite(squares) || !statistics_are_finite(context)) return not_finite(context);
  struct Trained *trained = context->model->trained;
  int64_t t = ++trained->steps;
  update.scale = clip_scale(__builtin_sqrt(squares), update.by.max_norm);
  update.first_rate = (float)(update.by.learning_rate / (1 - power(update.by.beta1, t)));
  update.second_root = (float)__builtin_sqrt(1 - power(update.by.beta2, t));
  update.weights = trained->weights;
  update.gradients = (const float *)(const void *)context->gradients;
  update.first = trained->first;
  update.second = trained->second;
  share(context, update_weights, &(Work){.trained = trained, .update = &update});
  take_statistics(context);
  context->ran = NOTHING_RAN;
  trained->version++;
  return RNNCC_OK;
}

rnncc_status training_gradient_norm(rnncc_context *context, double *norm) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (!norm || context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "gradient_norm: expected a backward() before, and a place");
  *norm = __builtin_sqrt(sum_of_squares(context));
  return RNNCC_OK;
}

rnncc_status training_optimizer_reset(rnncc_model *model) {
  if (!model) return RNNCC_ERROR_ARGUMENT;
  memset(model->trained->first, 0, (size_t)model->trained->floats * sizeof(float));
  memset(model->trained->second, 0, (size_t)model->trained->floats * sizeof(float));
  model->trained->steps = 0;
  return RNNCC_OK;
}

/* The runs count on from a number that is the seed's alone (the finaliser of SplitMix64, a bijection), and far from
 * those of seeds beside it. */
rnncc_status training_seed(rnncc_context *context, uint64_t seed) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  int32_t state = context->model->module->training.runs_state;
  uint64_t first = seed + UINT64_C(0x9e3779b97f4a7c15);
  first = (first ^ first >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  first = (first ^ first >> 27) * UINT64_C(0x94d049bb133111eb);
  first ^= first >> 31;
  return state < 0 ? RNNCC_OK : context_state_set(context, state, -1, &first, sizeof first);
}
#endif
