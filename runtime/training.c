/* SPDX-License-Identifier: MIT */
/* Training: the way back, gradients, and steps of optimisers. */
#include <string.h>

#include "float_mode.h"
#include "indirect.h"
#include "optimizer.h"
#include "trained.h"

#ifdef RNNCC_TRAINS /* else nothing of it is in the module */

/* ---- rows, shared by workers ---- */

typedef struct Work {
  const rnncc_context *context;
  const Update *update;
  bool differ; /* weights_differ() */
} Work;

static const struct Trained *trained_of(const Work *work) { return work->context->model->trained; }

static float *gradients_of(const rnncc_context *context) { return (float *)(void *)context->gradients; }

static int64_t piece_end(const struct Trained *trained, int64_t piece) {
  int64_t end = (piece + 1) * PIECE;
  return end < trained->floats ? end : trained->floats;
}

/* needs: the lock. Is any factor not 1, or have weights different counts of steps? */
static bool weights_differ(const rnncc_context *context) {
  const struct Trained *trained = context->model->trained;
  const float *factors = trained->factors;
  bool differ = false;
  for (int i = 0; i < context->model->module->training.info.n_parameters; i++)
    differ |= factors[2 * i] != 1 || factors[2 * i + 1] != 1 || trained->steps[i] != trained->steps[0];
  return differ;
}

/* Neighbours that have the same factors and count of steps. */
typedef struct Part {
  int64_t begin, end, steps;
  const float *factors; /* NULL: all are 1 */
} Part;

static bool is_frozen(const Part *part) { return part->factors && part->factors[0] == 0; }

/* What begins there and ends before `end`: of one weight, where weights differ in these. */
static Part part_from(const Work *work, int64_t begin, int64_t end) {
  const struct Trained *trained = trained_of(work);
  const ModuleTraining *training = &work->context->model->module->training;
  if (!work->differ) return (Part){begin, end, trained->steps[0], NULL};
  int i = 0;
  int64_t next = end;
  for (; i + 1 < training->info.n_parameters; i++) {
    next = (int64_t)(training->places[i + 1] / sizeof(float));
    if (next > begin) break;
    next = end;
  }
  return (Part){begin, next < end ? next : end, trained->steps[i], &trained->factors[2 * i]};
}

static void sum_squares(void *arg, Team *team) {
  const Work *work = arg;
  const struct Trained *trained = trained_of(work);
  FloatMode mode = float_mode_enter();
  int64_t begin, end;
  team_share(team, trained->pieces, &begin, &end);
  for (int64_t p = begin; p < end; p++) {
    double sum = 0;
    for (int64_t at = p * PIECE, last = piece_end(trained, p); at < last;) {
      Part part = part_from(work, at, last);
      if (!is_frozen(&part)) sum += squares_of(gradients_of(work->context) + at, part.end - at);
      at = part.end;
    }
    trained->sums[p] = sum;
  }
  float_mode_leave(mode);
}

/* By squaring: a module has no libm. */
static double power(double x, int64_t n) {
  double result = 1;
  for (; n; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

/* Of Adam's step t. */
static void set_rates(Update *update, int64_t t) {
  update->first_rate = (float)(update->by.learning_rate / (1 - power(update->by.beta1, t)));
  update->second_root = (float)__builtin_sqrt(1 - power(update->by.beta2, t));
}

static void update_part(const Update *all, const Part *part) {
  Update update = *all;
  if (part->factors) {
    update.by.learning_rate *= part->factors[0];
    update.by.weight_decay *= part->factors[1];
  }
  if (is_frozen(part)) {
    memcpy(update.weights + part->begin, update.before + part->begin,
           (size_t)(part->end - part->begin) * sizeof *update.weights);
  } else if (update.by.rule == RNNCC_SGD) {
    sgd_update(&update, part->begin, part->end);
  } else {
    set_rates(&update, part->steps);
    adam_update(&update, part->begin, part->end);
  }
}

static void update_weights(void *arg, Team *team) {
  const Work *work = arg;
  int64_t begin, end;
  team_share(team, trained_of(work)->pieces, &begin, &end);
  FloatMode mode = float_mode_enter();
  for (int64_t p = begin; p < end; p++)
    for (int64_t at = p * PIECE, last = piece_end(trained_of(work), p); at < last;) {
      Part part = part_from(work, at, last);
      update_part(work->update, &part);
      at = part.end;
    }
  float_mode_leave(mode);
}

static void add_kept(void *arg, Team *team) {
  const rnncc_context *context = ((const Work *)arg)->context;
  const float *kept = (const float *)(const void *)context->kept;
  float *gradients = gradients_of(context);
  int64_t begin, end;
  team_share(team, context->model->trained->floats, &begin, &end);
  FloatMode mode = float_mode_enter();
  for (int64_t i = begin; i < end; i++) gradients[i] += kept[i];
  float_mode_leave(mode);
}

/* On the workers if there is much to do. */
static void share(const rnncc_context *context, PoolBody *body, Work *work) {
  enum { LEAST_PIECES = 8 };
  if (context->model->trained->pieces >= LEAST_PIECES)
    pool_run(context->model->pool, context->model->turn, body, work);
  else
    indirect_body(body, work, &(Team){.rank = 0, .size = 1});
}

/* needs: the lock. */
static double sum_of_squares(const rnncc_context *context) {
  const struct Trained *trained = context->model->trained;
  double sum = 0;
  share(context, sum_squares, &(Work){.context = context, .differ = weights_differ(context)});
  for (int64_t p = 0; p < trained->pieces; p++) sum += trained->sums[p];
  return sum;
}

/* ---- gradients ---- */

rnncc_status training_gradient(rnncc_context *context, const char *name, void *data, size_t bytes) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "there are no gradients: expected a backward() before");
  const ModuleTraining *training = &context->model->module->training;
  int index;
  rnncc_status status = find_trained(training, training->info.n_parameters, name, data, bytes, &index);
  if (status == RNNCC_ERROR_SIZE)
    return context_fail(context, status, "gradient of '%.64s': %zu bytes given, it has another size", name, bytes);
  if (status) return context_fail(context, status, "no weight '%.64s' is trained, or data is NULL", name ? name : "");
  memcpy(data, context->gradients + training->places[index], bytes);
  return RNNCC_OK;
}

rnncc_status training_gradient_norm(rnncc_context *context, double *norm) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (!norm || context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "gradient_norm: expected a backward() before, and a place");
  trained_lock(context->model->trained);
  FloatMode mode = float_mode_enter();
  *norm = __builtin_sqrt(sum_of_squares(context));
  float_mode_leave(mode);
  trained_unlock(context->model->trained);
  return RNNCC_OK;
}

rnncc_status training_gradients_keep(rnncc_context *context, int32_t keep) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (keep && context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "gradients_keep: expected a backward() before");
  context->keeps = keep != 0;
  if (keep) memcpy(context->kept, context->gradients, context->model->module->training.trained_bytes);
  return RNNCC_OK;
}

/* ---- backwards ---- */

static bool loss_is_outside(const rnncc_context *context) { return context->model->module->training.info.loss < 0; }

/* Is there a run to go back through? Then the context holds its weights until go_back() has ended. */
static rnncc_status hold_the_runs(rnncc_context *context) {
  if (context->ran != FORWARD_RAN) /* backward() writes over what the run has left */
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "backward: expected a run() that succeeded before it, and one "
                        "for each backward()");
  context->held = trained_acquire(context->model->trained);
  if (context->ran_on == trained_number(context->held)) return RNNCC_OK;
  trained_release(context->held);
  context->ran = NOTHING_RAN;
  return context_fail(context, RNNCC_ERROR_ARGUMENT,
                      "backward: the model's weights have changed since the run(); expected a run() on them");
}

static rnncc_status go_back(rnncc_context *context) {
  context->ran = NOTHING_RAN;
  rnncc_status status = run_part(context, context->model->module->training.backward);
  trained_release(context->held);
  if (status) return context_fail(context, status, "backward: an index computed in the model is out of range");
  if (context->keeps) share(context, add_kept, &(Work){.context = context});
  context->ran = BACKWARD_RAN;
  return RNNCC_OK;
}

rnncc_status training_backward(rnncc_context *context) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (loss_is_outside(context))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "backward: the loss is outside of the module; expected backward_from()");
  rnncc_status status = hold_the_runs(context);
  return status ? status : go_back(context);
}

rnncc_status training_backward_from(rnncc_context *context, const rnncc_tensor *output_gradients,
                                    size_t n_output_gradients, rnncc_tensor *input_gradients,
                                    size_t n_input_gradients) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (!loss_is_outside(context))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "backward_from: the loss is an output of the module; expected backward()");
  rnncc_status status = hold_the_runs(context);
  if (status) return status;
  status = backward_check(context, output_gradients, n_output_gradients, input_gradients, n_input_gradients);
  if (status)
    trained_release(context->held);
  else
    status = go_back(context);
  for (size_t i = 0; !status && i < n_input_gradients; i++)
    deliver_staged(context, context->model->module->info.n_outputs + (int)i, tensor_at(input_gradients, (int)i));
  return status;
}

/* ---- steps ---- */

/* Names the first weight whose gradient, or next value, is not finite. */
static rnncc_status not_finite(rnncc_context *context) {
  const ModuleTraining *training = &context->model->module->training;
  context->keeps = false; /* no later gradient would make them finite */
  for (int i = 0; i < n_weights(training); i++) {
    const rnncc_tensor_info *info = weight_at(training, i);
    const float *gradient = (const float *)(const void *)(context->gradients + training->places[i]);
    if (i < training->info.n_parameters && context->model->trained->factors[2 * i] == 0) continue;
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

static void take_statistics(const rnncc_context *context, TrainedVersion *version) {
  const ModuleTraining *training = &context->model->module->training;
  memcpy((unsigned char *)version->weights + training->trained_bytes, context->gradients + training->trained_bytes,
         statistics_bytes(training));
}

/* ---- the rules ---- */

/* Neither traps, where the host traps comparisons with NaN. */
static bool is_at_least(float x, float bound) { return __builtin_isgreaterequal(x, bound); }
static bool is_below(float x, float bound) { return is_at_least(x, 0) && __builtin_isless(x, bound); }

/* The caller's, whose header may be older. */
static bool read_optimizer(const rnncc_optimizer *given, rnncc_optimizer *own) {
  const size_t least = offsetof(rnncc_optimizer, nesterov) + sizeof given->nesterov;
  if (!given || given->struct_size < least) return false;
  *own = (rnncc_optimizer){0};
  memcpy(own, given, given->struct_size < sizeof *own ? given->struct_size : sizeof *own);
  if (own->gradient_scale == 0) own->gradient_scale = 1;
  bool adam = own->rule == RNNCC_ADAM || own->rule == RNNCC_ADAMW;
  if (own->rule != RNNCC_SGD && !adam) return false;
  if (!is_below(own->learning_rate, __builtin_inff()) || !is_below(own->weight_decay, __builtin_inff())) return false;
  if (!is_at_least(own->max_norm, 0) || !is_below(own->gradient_scale, __builtin_inff())) return false;
  if (!adam) return is_below(own->momentum, __builtin_inff());
  return is_below(own->beta1, 1) && is_below(own->beta2, 1) && is_below(own->epsilon, __builtin_inff());
}

static float clip_scale(double norm, float most) {
  double scale = most > 0 ? (double)most / (norm + 1e-6) : 1;
  return scale < 1 ? (float)scale : 1;
}

static const char *rule_name(int32_t rule) { return rule == RNNCC_SGD ? "sgd" : rule == RNNCC_ADAM ? "adam" : "adamw"; }

/* Weights that are frozen keep their means, and the count of steps that these are of. */
static void count_step(struct Trained *trained, const ModuleTraining *training) {
  for (int i = 0; i < training->info.n_parameters; i++) trained->steps[i] += trained->factors[2 * i] != 0;
}

/* Does the rule go on from what steps before have left? */
static bool has_means(const rnncc_optimizer *by) { return by->rule != RNNCC_SGD || by->momentum != 0; }

/* needs: the lock, and finite gradients. */
static rnncc_status step_by(rnncc_context *context, double squares, Update *update) {
  struct Trained *trained = context->model->trained;
  const rnncc_optimizer *by = &update->by;
  if (has_means(by) && trained->rule != NO_RULE && trained->rule != (int32_t)by->rule)
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "step: expected the rule %s, of which the model has momentum or means, found %s; "
                        "optimizer_reset() makes it forget them",
                        rule_name(trained->rule), rule_name((int32_t)by->rule));
  TrainedVersion *next = spare_weights(trained);
  if (!next) return context_fail(context, RNNCC_ERROR_MEMORY, "step: out of memory for weights beside those of runs");
  if (has_means(by)) {
    trained->rule = (int32_t)by->rule;
    count_step(trained, &context->model->module->training);
  }
  update->scale = by->gradient_scale * clip_scale(__builtin_sqrt(squares) * by->gradient_scale, by->max_norm);
  update->before = newest_weights(trained)->weights;
  update->weights = next->weights;
  update->gradients = gradients_of(context);
  update->first = trained->first;
  update->second = trained->second;
  share(context, update_weights, &(Work){.context = context, .update = update, .differ = weights_differ(context)});
  take_statistics(context, next);
  publish_trained(trained, next);
  context->ran = NOTHING_RAN;
  context->keeps = false;
  return RNNCC_OK;
}

static rnncc_status checked_step(rnncc_context *context, const rnncc_optimizer *optimizer) {
  Update update = {.scale = 1};
  if (!read_optimizer(optimizer, &update.by))
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "step: expected a rule that is known, numbers that are finite and not negative, and betas "
                        "below 1");
  if (context->ran != BACKWARD_RAN)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "step: expected a backward() before it");
  trained_lock(context->model->trained);
  double squares = sum_of_squares(context);
  bool finite = __builtin_isfinite(squares) && statistics_are_finite(context);
  rnncc_status status = finite ? step_by(context, squares, &update) : not_finite(context);
  trained_unlock(context->model->trained);
  return status;
}

rnncc_status training_step(rnncc_context *context, const rnncc_optimizer *optimizer) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  FloatMode mode = float_mode_enter();
  rnncc_status status = checked_step(context, optimizer);
  float_mode_leave(mode);
  return status;
}

rnncc_status training_weight_factors(rnncc_model *model, const char *name, float learning_rate, float weight_decay) {
  if (!model || !is_below(learning_rate, __builtin_inff()) || !is_below(weight_decay, __builtin_inff()))
    return RNNCC_ERROR_ARGUMENT;
  const ModuleTraining *training = &model->module->training;
  struct Trained *trained = model->trained;
  int index = find_weight_named(training, training->info.n_parameters, name);
  if (index < 0) return RNNCC_ERROR_ARGUMENT;
  trained_lock(trained);
  trained->factors[2 * index] = learning_rate;
  trained->factors[2 * index + 1] = weight_decay;
  trained_unlock(trained);
  return RNNCC_OK;
}

rnncc_status training_optimizer_reset(rnncc_model *model) {
  if (!model) return RNNCC_ERROR_ARGUMENT;
  const ModuleTraining *training = &model->module->training;
  trained_lock(model->trained);
  memset(model->trained->first, 0, model->trained->bytes);
  memset(model->trained->second, 0, model->trained->bytes);
  for (int i = 0; i < training->info.n_parameters; i++) model->trained->steps[i] = 0;
  model->trained->rule = NO_RULE;
  trained_unlock(model->trained);
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
