/* SPDX-License-Identifier: MIT */
/* One inference: check, bring the states in, let every worker walk the schedule, and on success take the results out.
 */
#include "context.h"
#include "float_mode.h"
#include "indirect.h"
#include "memory.h"

typedef struct Region {
  const Run *run;
  void (*schedule)(const Run *run, Team *team);
} Region;

static void region_body(void *arg, Team *team) {
  const Region *region = arg;
  FloatMode mode = float_mode_enter();
  if (region->run->profile) profile_enter(team);
  indirect_part(region->schedule, region->run, team);
  float_mode_leave(mode);
}

#ifdef RNNCC_MUTABLE
/* Weights that can change are those of now until the run ends. */
static void take_weights(Run *run, rnncc_context *context) {
  ModelWeights *weights = context->model->weights;
  if (weights) run->blocks = weights_acquire(weights, &context->reader);
}

static void leave_weights(rnncc_context *context) {
  if (context->model->weights) weights_release(&context->reader);
}
#else
static void take_weights(Run *run, rnncc_context *context) { (void)run, (void)context; }
static void leave_weights(rnncc_context *context) { (void)context; }
#endif

#ifdef RNNCC_TRAINS
/* So are those that are trained. */
static void take_trained(rnncc_context *context) {
  context->held = trained_acquire(context->model->trained);
  context->ran_on = trained_number(context->held);
}

static void leave_trained(const rnncc_context *context) { trained_release(context->held); }
#else
static void take_trained(const rnncc_context *context) { (void)context; }
static void leave_trained(const rnncc_context *context) { (void)context; }
#endif

#ifdef RNNCC_EDGE
bool run_is_shared(const rnncc_context *context) { return (void)context, true; }
#else
/* A run of little work is done sooner by one thread than by several, which wait for each other. */
bool run_is_shared(const rnncc_context *context) {
  const Module *module = context->model->module;
  FloatMode host = float_mode_enter(); /* which may trap what is not exact */
  double work = 1;
  for (int i = 0; i < module->info.n_dims; i++) {
    int64_t optimum = module->info.dims[i].opt;
    work *= (double)context->dims[i] / (double)(optimum ? optimum : 1);
  }
  float_mode_leave(host);
  return work >= module->share_from || context->model->shares_all;
}
#endif

rnncc_status run_part(rnncc_context *context, void (*part)(const Run *run, Team *team)) {
  const Module *module = context->model->module;
  _Atomic int fault = RNNCC_OK;
  Run run = {
      .inputs = context->inputs,
      .outputs = context->outputs,
      .arena = context->arena,
      .weights = module->weights,
      .dims = context->dims,
      .data_dims = context->dims + module->info.n_dims,
      .fault = &fault,
      .turn = context->turn,
      .profile = context->profiling ? &context->profile : NULL,
#ifdef RNNCC_TRAINS
      .parameters = trained_parameters(context->held),
      .gradients = context->gradients,
#endif
  };
  context->turn ^= 1;
  take_weights(&run, context);
  if (run.profile) profile_begin(&run);
  Region region = {&run, part};
  if (run_is_shared(context))
    pool_run(context->model->pool, context->model->turn, region_body, &region);
  else
    region_body(&region, &(Team){.rank = 0, .size = 1});
  leave_weights(context);
  return atomic_load_explicit(&fault, memory_order_relaxed);
}

void deliver_staged(const rnncc_context *context, int output, rnncc_tensor *tensor) {
  const int64_t *staged = context->model->module->staged_outputs;
  size_t bytes = shape_elements(tensor->shape, tensor->rank) * rnncc_dtype_size(tensor->dtype);
  if (bytes && staged && staged[output] >= 0) memcpy(tensor->data, context->arena + staged[output], bytes);
}

static void deliver_outputs(const rnncc_context *context, rnncc_tensor *outputs) {
  const Module *module = context->model->module;
  if (module->output_room) indirect_shapes(module->output_shapes, context->dims, context->shapes);
  for (int i = 0; i < module->info.n_outputs; i++) {
    rnncc_tensor *output = tensor_at(outputs, i);
    int32_t rank = output->rank = module->info.outputs[i].rank;
    memcpy(output->shape, context->shapes[i], rank * sizeof *output->shape);
    deliver_staged(context, i, output);
  }
}

rnncc_status context_run(rnncc_context *context, const rnncc_tensor *inputs, size_t n_inputs, rnncc_tensor *outputs,
                         size_t n_outputs) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
#ifdef RNNCC_TRAINS
  context->ran = NOTHING_RAN;
#endif
  rnncc_status status = run_check(context, inputs, n_inputs, outputs, n_outputs);
  if (status) return status;
  states_load(context);
  take_trained(context);
  status = run_part(context, context->model->module->schedule);
  leave_trained(context);
  context->profiled_runs += context->profiling;
  if (status)
    return context_fail(context, status,
                        "a value computed in the model, an index, length, divisor or extent, is out of range");
  states_store(context);
  deliver_outputs(context, outputs);
#ifdef RNNCC_TRAINS
  context->ran = FORWARD_RAN;
#endif
  return RNNCC_OK;
}
