/* SPDX-License-Identifier: MIT */
/* Models and contexts, as the runtime sees them. */
#ifndef RNNCC_CONTEXT_H
#define RNNCC_CONTEXT_H

#include <stdbool.h>

#include "module.h"
#include "pool.h"

/* The modules of this object: target by target, the one that needs most of the CPU first, a module for each network.
 * EACH(name, first): the module, and the place of its target's first one. rnncc says them where there are several. */
#ifndef RNNCC_MODULES
#define RNNCC_MODULES(EACH) EACH(rnncc_module, 0)
#define RNNCC_NETWORKS 1 /* of each target */
#endif

#define MODULE_DECLARATION(name, first) extern const Module name;
RNNCC_MODULES(MODULE_DECLARATION)

/* Whether the module is one of them. */
RUNTIME_LOCAL bool module_is_here(const Module *module);
/* The most that workers need of their stacks, of all networks and targets; 0: not known. */
RUNTIME_LOCAL size_t module_stack(void);

#ifndef RNNCC_EDGE
/* See weights.h. RNNCC_MUTABLE is defined where a network's weights can change: else nothing of it is in the module. */
typedef struct ModelWeights ModelWeights;
typedef struct WeightsVersion WeightsVersion;
typedef struct WeightsReader {
  const WeightsVersion *_Atomic reading; /* NULL: no run */
  struct WeightsReader *next;
} WeightsReader;

#ifdef RNNCC_MUTABLE
/* The blocks of the current version, which stay as they are until weights_release(). */
RUNTIME_LOCAL const unsigned char *const *weights_acquire(ModelWeights *weights, WeightsReader *reader);
static inline void weights_release(WeightsReader *reader) {
  atomic_store_explicit(&reader->reading, NULL, memory_order_release);
}
#endif
#endif

#ifdef RNNCC_TRAINS
/* See trained.h. */
typedef struct TrainedVersion TrainedVersion;
#endif

struct rnncc_model {
  const Module *module;
  Pool *pool;
  Turn turn;
  bool shares_all; /* runs of little work, too */
#ifdef RNNCC_TRAINS
  struct Trained *trained; /* its weights */
#endif
#ifndef RNNCC_EDGE
  ModelWeights *weights; /* NULL: none can change; else RNNCC_MUTABLE is defined */
#endif
};

/* One stream of runs. This struct, the arrays and the arena are one block of memory. */
struct rnncc_context {
  rnncc_model *model;
  bool owns_memory;
  bool profiling;
  uint64_t profiled_runs;
  int64_t turn;                      /* of the next run */
  int64_t *dims;                     /* [n_dims], then [n_data_dims], of the last run */
  const void **inputs;               /* [module_reads()], of the last run, and of backward_from() */
  void **outputs;                    /* [module_writes()] */
  int64_t (*shapes)[RNNCC_MAX_RANK]; /* [n_outputs], of the last run */
  unsigned char **states;            /* [n_states], each of all slots */
  RunProfile profile;                /* its steps: [n_steps] */
  rnncc_profile_entry *entries;      /* [n_steps] */
  unsigned char *arena;              /* [arena_bytes] */
#ifdef RNNCC_TRAINS
  unsigned char *gradients; /* [training.bytes] */
  unsigned char *kept;      /* [training.trained_bytes]: gradients that the next ones are added to, if it `keeps` any */
  bool keeps;
  enum { NOTHING_RAN, FORWARD_RAN, BACKWARD_RAN } ran;
  int64_t ran_on;       /* FORWARD_RAN: on weights of which number */
  TrainedVersion *held; /* while a part of the module runs: on these weights */
#endif
#ifndef RNNCC_EDGE
  WeightsReader reader;
  char error[256];
#endif
};

enum { CONTEXT_ALIGNMENT = 64 };

#ifdef RNNCC_EDGE /* no messages, and nothing of them in the code */
#define MESSAGE(text) ""
static inline rnncc_status context_fail(const rnncc_context *context, rnncc_status status, const char *format, ...) {
  (void)context, (void)format;
  return status;
}
#else
#define MESSAGE(text) text
/* Keeps the message for last_error; returns status. */
RUNTIME_LOCAL rnncc_status context_fail(rnncc_context *context, rnncc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The caller's options as this header has them: fields that its older one lacks are 0; without options all are. */
RUNTIME_LOCAL rnncc_status options_read(const rnncc_options *given, rnncc_options *own, const char **why);
#endif

/* What ends a function that makes something: `reason` in *why, if it is wanted. */
static inline rnncc_status refused(rnncc_status status, const char *reason, const char **why) {
  if (why) *why = reason;
  return status;
}

/* Memory, for a context or weights that are set, aligned as contexts are; NULL: none. */
RUNTIME_LOCAL void *memory_take(size_t bytes);
RUNTIME_LOCAL void memory_give(void *memory);

/* Empties the trace of a run that is profiled, and sets the time that a worker's first stamp counts from. */
RUNTIME_LOCAL void profile_begin(const Run *run);
RUNTIME_LOCAL void profile_enter(Team *team);

/* Fills the context's dims, inputs, outputs and shapes. If it fails, nothing that the caller can see has changed. */
RUNTIME_LOCAL rnncc_status run_check(rnncc_context *context, const rnncc_tensor *inputs, size_t n_inputs,
                                     const rnncc_tensor *outputs, size_t n_outputs);

/* Element of an array of the caller's, whose header may have more fields. */
static inline rnncc_tensor *tensor_at(const rnncc_tensor *tensors, int index) {
  return (rnncc_tensor *)((uintptr_t)tensors + (size_t)index * tensors->struct_size);
}

/* Elements of a shape, 1 for rank 0. */
RUNTIME_LOCAL size_t shape_elements(const int64_t *shape, int32_t rank);

#ifdef RNNCC_TRAINS
/* The same of backward_from(), after a run: fills inputs and outputs behind the model's own, and the results' shapes.
 */
RUNTIME_LOCAL rnncc_status backward_check(rnncc_context *context, const rnncc_tensor *given, size_t n_given,
                                          rnncc_tensor *results, size_t n_results);
#endif

/* Copies to the caller's buffer what the schedule has left of this output in the arena, if it has. */
RUNTIME_LOCAL void deliver_staged(const rnncc_context *context, int output, rnncc_tensor *tensor);

/* Copies every state's slots of this run's batch into the arena, and back. */
RUNTIME_LOCAL void states_load(rnncc_context *context);
RUNTIME_LOCAL void states_store(rnncc_context *context);

/* Runs part of the module on the context's last inputs. Returns what the kernels found wrong with the data, or
 * RNNCC_OK. */
RUNTIME_LOCAL rnncc_status run_part(rnncc_context *context, void (*part)(const Run *run, Team *team));

/* Whether a run on the context's dims is worth the workers. */
RUNTIME_LOCAL bool run_is_shared(const rnncc_context *context);

#ifdef RNNCC_TRAINS
/* Of rnncc_training. */
RUNTIME_LOCAL rnncc_status training_backward(rnncc_context *context);
RUNTIME_LOCAL rnncc_status training_backward_from(rnncc_context *context, const rnncc_tensor *output_gradients,
                                                  size_t n_output_gradients, rnncc_tensor *input_gradients,
                                                  size_t n_input_gradients);
RUNTIME_LOCAL rnncc_status training_gradient(rnncc_context *context, const char *name, void *data, size_t bytes);
RUNTIME_LOCAL rnncc_status training_step(rnncc_context *context, const rnncc_optimizer *optimizer);
RUNTIME_LOCAL rnncc_status training_gradient_norm(rnncc_context *context, double *norm);
RUNTIME_LOCAL rnncc_status training_weights_get(const rnncc_model *model, const char *name, void *data, size_t bytes);
RUNTIME_LOCAL rnncc_status training_weights_set(rnncc_model *model, const char *name, const void *data, size_t bytes);
RUNTIME_LOCAL rnncc_status training_weights_update(rnncc_model *model, const rnncc_weight *list, size_t n, char *why,
                                                   size_t room);
RUNTIME_LOCAL rnncc_status training_optimizer_reset(rnncc_model *model);
RUNTIME_LOCAL rnncc_status training_seed(rnncc_context *context, uint64_t seed);
RUNTIME_LOCAL rnncc_status training_gradients_keep(rnncc_context *context, int32_t keep);
RUNTIME_LOCAL rnncc_status training_weight_factors(rnncc_model *model, const char *name, float learning_rate,
                                                   float weight_decay);
RUNTIME_LOCAL size_t training_checkpoint_bytes(const rnncc_context *context);
RUNTIME_LOCAL rnncc_status training_checkpoint_get(rnncc_context *context, void *data, size_t bytes);
RUNTIME_LOCAL rnncc_status training_checkpoint_set(rnncc_context *context, const void *data, size_t bytes);

/* The model's weights as they begin; NULL: out of memory. */
RUNTIME_LOCAL struct Trained *trained_create(const Module *module);
RUNTIME_LOCAL void trained_destroy(struct Trained *trained);
/* The weights of now, which stay as they are until trained_release(). */
RUNTIME_LOCAL TrainedVersion *trained_acquire(struct Trained *trained);
RUNTIME_LOCAL void trained_release(TrainedVersion *version);
RUNTIME_LOCAL const unsigned char *trained_parameters(const TrainedVersion *version);
/* How often the weights had changed before. */
RUNTIME_LOCAL int64_t trained_number(const TrainedVersion *version);
#endif

/* The functions of rnncc_api. Its model_create() knows the module. */
RUNTIME_LOCAL rnncc_status model_create(const Module *module, const rnncc_options *options, rnncc_model **out,
                                        const char **why);
RUNTIME_LOCAL void model_destroy(rnncc_model *model);
RUNTIME_LOCAL rnncc_status shared_pool_create(const rnncc_options *options, rnncc_pool **out, const char **why);
RUNTIME_LOCAL void shared_pool_destroy(rnncc_pool *pool);
RUNTIME_LOCAL rnncc_status model_weights_set(rnncc_model *model, const rnncc_weight *list, size_t n, char *why,
                                             size_t room);
RUNTIME_LOCAL rnncc_status model_weights_get(rnncc_model *model, const char *name, void *data, size_t bytes, char *why,
                                             size_t room);
RUNTIME_LOCAL int32_t model_threads(const rnncc_model *model);
RUNTIME_LOCAL int32_t model_narrowed(const rnncc_model *model);
RUNTIME_LOCAL size_t context_size(const rnncc_model *model);
RUNTIME_LOCAL rnncc_status context_create(rnncc_model *model, void *memory, size_t bytes, rnncc_context **out,
                                          const char **why);
RUNTIME_LOCAL void context_destroy(rnncc_context *context);
RUNTIME_LOCAL rnncc_status context_warmup(rnncc_context *context);
RUNTIME_LOCAL rnncc_status context_run(rnncc_context *context, const rnncc_tensor *inputs, size_t n_inputs,
                                       rnncc_tensor *outputs, size_t n_outputs);
RUNTIME_LOCAL rnncc_status context_state_reset(rnncc_context *context, int32_t slot);
RUNTIME_LOCAL rnncc_status context_state_get(rnncc_context *context, int32_t state, int32_t slot, void *data,
                                             size_t bytes);
RUNTIME_LOCAL rnncc_status context_state_set(rnncc_context *context, int32_t state, int32_t slot, const void *data,
                                             size_t bytes);
RUNTIME_LOCAL rnncc_status context_profile(rnncc_context *context, int32_t on, const rnncc_profile_entry **entries,
                                           size_t *n);
RUNTIME_LOCAL rnncc_status context_trace(rnncc_context *context, const rnncc_trace *trace);
RUNTIME_LOCAL const char *context_last_error(const rnncc_context *context);
RUNTIME_LOCAL rnncc_status context_output_shapes(rnncc_context *context, const int64_t *dims, size_t n_dims,
                                                 int64_t (*shapes)[RNNCC_MAX_RANK], size_t n_outputs);

#endif
