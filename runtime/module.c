/* SPDX-License-Identifier: MIT */
/*
 * The one exported symbol: it hands out a table of functions if this process can use them. An object of several targets
 * or networks has a Module and a table for each. Nothing is kept of the choice: each call makes it anew.
 */
#include "context.h"

#define PLACE(name, first) RNNCC_JOIN_VALUES(place_of_, name),
enum { RNNCC_MODULES(PLACE) MODULES };

#define CREATE(name, first)                                                                                            \
  static rnncc_status RNNCC_JOIN_VALUES(create_, name)(const rnncc_options *options, rnncc_model **out,                \
                                                       const char **why) {                                             \
    return model_create(&(name), options, out, why);                                                                   \
  }
RNNCC_MODULES(CREATE)

static const rnncc_api *const apis[MODULES];

#ifdef RNNCC_TRAINS
#define TRAINING(name, first)                                                                                          \
  static const rnncc_training RNNCC_JOIN_VALUES(training_, name) = {                                                   \
      .struct_size = sizeof(rnncc_training),                                                                           \
      .info = &(name).training.info,                                                                                   \
      .backward = training_backward,                                                                                   \
      .gradient = training_gradient,                                                                                   \
      .step = training_step,                                                                                           \
      .gradient_norm = training_gradient_norm,                                                                         \
      .weights_get = training_weights_get,                                                                             \
      .weights_set = training_weights_set,                                                                             \
      .optimizer_reset = training_optimizer_reset,                                                                     \
      .backward_from = training_backward_from,                                                                         \
      .seed = training_seed,                                                                                           \
      .weights_update = training_weights_update,                                                                       \
      .gradients_keep = training_gradients_keep,                                                                       \
      .weight_factors = training_weight_factors,                                                                       \
      .checkpoint_bytes = training_checkpoint_bytes,                                                                   \
      .checkpoint_get = training_checkpoint_get,                                                                       \
      .checkpoint_set = training_checkpoint_set,                                                                       \
  };
RNNCC_MODULES(TRAINING)
#define TRAINING_OF(name) &RNNCC_JOIN_VALUES(training_, name)
#else
#define TRAINING_OF(name) NULL
#endif

#define API(name, first)                                                                                               \
  static const rnncc_api RNNCC_JOIN_VALUES(api_, name) = {                                                             \
      .abi = RNNCC_ABI,                                                                                                \
      .struct_size = sizeof(rnncc_api),                                                                                \
      .info = &(name).info,                                                                                            \
      .model_create = RNNCC_JOIN_VALUES(create_, name),                                                                \
      .model_destroy = model_destroy,                                                                                  \
      .model_threads = model_threads,                                                                                  \
      .context_size = context_size,                                                                                    \
      .context_create = context_create,                                                                                \
      .context_destroy = context_destroy,                                                                              \
      .warmup = context_warmup,                                                                                        \
      .run = context_run,                                                                                              \
      .state_reset = context_state_reset,                                                                              \
      .state_get = context_state_get,                                                                                  \
      .state_set = context_state_set,                                                                                  \
      .profile = context_profile,                                                                                      \
      .last_error = context_last_error,                                                                                \
      .model_narrowed = model_narrowed,                                                                                \
      .networks = apis + (first),                                                                                      \
      .n_networks = RNNCC_NETWORKS,                                                                                    \
      .output_shapes = context_output_shapes,                                                                          \
      .trace = context_trace,                                                                                          \
      .pool_create = shared_pool_create,                                                                               \
      .pool_destroy = shared_pool_destroy,                                                                             \
      .training = TRAINING_OF(name),                                                                                   \
      .weights_set = model_weights_set,                                                                                \
      .weights_get = model_weights_get,                                                                                \
  };
RNNCC_MODULES(API)

#define TABLE(name, first) &RNNCC_JOIN_VALUES(api_, name),
static const rnncc_api *const apis[MODULES] = {RNNCC_MODULES(TABLE)};

#define ADDRESS(name, first) &(name),
static const Module *const modules[MODULES] = {RNNCC_MODULES(ADDRESS)};

size_t module_stack(void) {
  size_t most = 0;
  for (int i = 0; i < MODULES; i++)
    if (modules[i]->info.worker_stack_bytes > most) most = modules[i]->info.worker_stack_bytes;
  return most;
}

bool module_is_here(const Module *module) {
  for (int i = 0; i < MODULES; i++)
    if (modules[i] == module) return true;
  return false;
}

#define LACKING(what) MESSAGE("this module needs " what ", which this CPU or its operating system lacks")

static const char *const lacking[] = {
#define CPU_FEATURE(name, title, flags) LACKING(title " (" flags ")"),
#include "cpu.def"
};

/* Of all networks of one target, from modules[first] on. */
static uint32_t features_of_target(int first) {
  uint32_t features = 0;
  for (int i = 0; i < RNNCC_NETWORKS; i++) features |= modules[first + i]->cpu_features;
  return features;
}

/* NULL: this CPU has all that these networks need. */
static const char *lack_of(uint32_t needed, uint32_t features) {
  uint32_t missing = needed & ~features;
  if (!missing && !cpu_grants(needed)) missing = CPU_AMX;
  if (!missing) return NULL;
  for (int i = CPU_FEATURES; i-- > 0;)
    if (missing & 1u << i) return lacking[i];
  return LACKING("an instruction set unknown to this runtime");
}

/* rnncc says where there are several targets what $RNNCC_ISA can be. */
#ifdef RNNCC_ISAS
#include <stdlib.h>
#include <string.h>

/* The user's choice among those that the CPU has; NULL: the best. */
static const char *isa_asked_for(void) {
  const char *isa = getenv("RNNCC_ISA");
  return isa && *isa ? isa : NULL;
}

static bool is_isa(const Module *module, const char *isa) {
  return !isa || !strcmp(isa, module->info.isa) || !strcmp(isa, module->info.target);
}

static const char unknown_isa[] = "RNNCC_ISA: expected one of those that this module has: " RNNCC_ISAS;
#else
static const char *isa_asked_for(void) { return NULL; }
static bool is_isa(const Module *module, const char *isa) { return (void)module, (void)isa, true; }
static const char unknown_isa[] = "";
#endif

/* Of those targets that the CPU can run, the first; else *reason is what it lacks for the last. */
static const rnncc_api *choose(const char **reason) {
  uint32_t features = cpu_features();
  const char *isa = isa_asked_for();
  *reason = unknown_isa;
  for (int i = 0; i < MODULES; i += RNNCC_NETWORKS) {
    if (!is_isa(modules[i], isa)) continue;
    *reason = lack_of(features_of_target(i), features);
    if (!*reason) return apis[i];
  }
  return NULL;
}

static const char older_application[] =
    MESSAGE("this module's ABI is newer than the application's: build the application with the rnncc.h of the rnncc "
            "that made the module");
static const char older_module[] =
    MESSAGE("this module's ABI is older than the application's: compile the model again with the rnncc that the "
            "application's rnncc.h is of");

const rnncc_api *rnncc_module_query(uint32_t abi, const char **why) {
  const char *reason = abi < RNNCC_ABI ? older_application : older_module;
  const rnncc_api *api = abi == RNNCC_ABI ? choose(&reason) : NULL;
  if (why) *why = api ? NULL : reason;
  return api;
}
