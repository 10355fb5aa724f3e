/* SPDX-License-Identifier: MIT */
/*
 * The ABI of a compiled module: the one header an application needs.
 *
 * A module is a shared object with one exported symbol, rnncc_module_query. It returns a table of functions, or NULL
 * and a reason. Nothing here allocates behind the caller's back except model_create, pool_create, context_create
 * (without caller memory), weights_set and, while runs read older weights, what changes trained weights; nothing
 * prints, exits or raises a signal.
 *
 * A model is immutable, but for weights_set() and training, and may be shared between threads. A context is one stream
 * of runs with its states and working memory; one thread at a time may use it, and it may go from thread to thread.
 *
 *   threads       run() returns when the outputs are there; to go on meanwhile, call it from a thread of your own. It
 *                 shares its work with the model's workers, if these are free. If another run has them, it is done by
 *                 its caller's thread alone, or waits, as options.waits says. Results are the same, bit for bit.
 *   real time     run() allocates nothing and takes no lock that another run holds while it computes; on a model of one
 *                 thread it makes no system call. Of options.waits the caller waits for other runs.
 *   numbers       denormals are taken and written as zero (not on RISC-V, which always has them), rounding is to
 *                 nearest, no exception traps: on the threads of a run while it lasts. The caller's mode is as it was
 *                 when run() returns.
 *   stack         64 KiB of the caller's stack are room for a call; info says what this module needs. Workers have
 *                 1 MiB each, or more if it needs more; those of a shared pool what the module needs that made it.
 *   unloading     dlclose() after all models and contexts are destroyed, and pools that the module made: then nothing
 *                 is left of it, no thread, no memory and no handler. Before, the workers' code would go away under
 *                 them, and the process crashes.
 *   fork          in the child there are no workers: runs are their callers' alone, wait for nobody, and give the same
 *                 results; contexts, models and pools may be destroyed. Of a context that another thread of the parent
 *                 was using, only destroying is left. If that thread was in a step(), optimizer_reset() or
 *                 checkpoint_set(), the model's weights are whole, but what optimisers keep may be of half a call:
 *                 optimizer_reset() or checkpoint_set() comes first in the child.
 *   signals       workers block all but those that their own instructions raise, and the profiler's. A handler may
 *                 interrupt run(), but must neither jump out of it nor use the same context.
 *   cancellation  run() has no cancellation point: a thread that is cancelled ends after it. Where asynchronous
 *                 cancellation is enabled run() may not be called: the workers would stay taken for ever. Destroying
 *                 joins threads, which is a cancellation point, after which nobody else can: disable it there. Workers
 *                 are not to be cancelled.
 *   limits        8 axes a tensor, 1,024 threads a pool; a tensor's bytes are those of size_t.
 */
#ifndef RNNCC_H
#define RNNCC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How this ABI grows: a struct only gets fields at its end, behind any padding, and says its size, so that code of
 * another age finds its own fields where they were. Each has the size of the header that its maker was built with:
 *
 *   rnncc_api, rnncc_info     what the module was built with: RNNCC_HAS(api, field) says whether it has a field
 *   rnncc_options             what the caller was built with: the module takes fields that are not there as 0
 *   elements of arrays        an index must step by the maker's size, not by this header's: read the module's arrays by
 *                             rnncc_input_at() and its like; the caller's rnncc_tensor have `struct_size`
 *
 * RNNCC_ABI changes only where that is not enough. A module and an application of different RNNCC_ABI do not work
 * together, and say so.
 */
#define RNNCC_ABI 2u
#define RNNCC_MAX_RANK 8
#define RNNCC_DYNAMIC (-1) /* in rnncc_tensor_info.shape: known only at run time, see dim[] */

typedef enum rnncc_status {
  RNNCC_OK = 0,
  RNNCC_ERROR_ARGUMENT = 1,    /* NULL, misaligned or overlapping buffers, wrong count, unknown slot */
  RNNCC_ERROR_SHAPE = 2,       /* rank, fixed dimension, or two inputs that disagree on a named dimension */
  RNNCC_ERROR_BOUND = 3,       /* a named dimension outside the range it was compiled for, or no multiple */
  RNNCC_ERROR_DTYPE = 4,       /* element type differs from the module's */
  RNNCC_ERROR_SIZE = 5,        /* buffer smaller than its shape needs */
  RNNCC_ERROR_VALUE = 6,       /* an index, length, divisor or extent in the input data is out of range */
  RNNCC_ERROR_MEMORY = 7,      /* the system has no memory or no thread to give */
  RNNCC_ERROR_UNSUPPORTED = 8, /* this CPU or this build of the module lacks it */
} rnncc_status;

typedef enum rnncc_dtype {
  RNNCC_NONE = 0, /* no type; never a tensor's */
  RNNCC_F32 = 1,
  RNNCC_I32 = 2,
  RNNCC_I64 = 3,
  RNNCC_U8 = 4,
  RNNCC_BOOL = 5, /* one byte, 0 or 1 */
  RNNCC_F64 = 6,
  RNNCC_F16 = 7, /* IEEE 754 binary16 */
  RNNCC_I8 = 8,
  RNNCC_I16 = 9,
  RNNCC_U16 = 10,
  RNNCC_U32 = 11,
  RNNCC_U64 = 12,
  RNNCC_BF16 = 13,     /* the upper half of an IEEE 754 binary32 */
  RNNCC_F8E4M3FN = 14, /* these five one byte, as ONNX defines them */
  RNNCC_F8E4M3FNUZ = 15,
  RNNCC_F8E5M2 = 16,
  RNNCC_F8E5M2FNUZ = 17,
  RNNCC_F8E8M0 = 18,
  /* Of less than 8 bits: one byte an element, which is in its lowest bits, as arrays of NumPy's ml_dtypes are. The bits
   * above are ignored. An element that the module makes has the sign's copies there: it may be read as int8_t. */
  RNNCC_F4E2M1 = 19,
  RNNCC_I4 = 20,
  RNNCC_U4 = 21,
  RNNCC_I2 = 22,
  RNNCC_U2 = 23,
} rnncc_dtype;

/* One tensor of the caller: row-major, contiguous, aligned to its element. */
typedef struct rnncc_tensor {
  uint32_t struct_size; /* sizeof(rnncc_tensor); of an array the first one's counts */
  rnncc_dtype dtype;
  void *data;   /* inputs are only read; an output's buffer is the caller's */
  size_t bytes; /* size of the buffer; for outputs at least that of the run's shape: max_shape is always enough */
  int32_t rank; /* 0 is a scalar; set by run() for outputs */
  int64_t shape[RNNCC_MAX_RANK]; /* set by run() for outputs */
} rnncc_tensor;

/* A dimension that is known only at run time. */
typedef struct rnncc_dim_info {
  const char *name; /* as in the model file, UTF-8 */
  int64_t min, opt, max;
  int64_t multiple; /* every extent is one of it; 1: any from min to max */
} rnncc_dim_info;

/* An input, an output or a state of the module. Strings live as long as the module is loaded. The length of an output's
 * axis may depend on the data, up to max_shape. */
typedef struct rnncc_tensor_info {
  const char *name;
  rnncc_dtype dtype;
  int32_t rank;
  int64_t shape[RNNCC_MAX_RANK];     /* RNNCC_DYNAMIC where it is known only at run time */
  int64_t max_shape[RNNCC_MAX_RANK]; /* the same at every dimension's maximum: sizes a buffer for any run */
  int32_t dim[RNNCC_MAX_RANK];       /* index into info.dims where the axis is that dimension itself, else -1 */
} rnncc_tensor_info;

/* A state: an input that the context carries from run to run. It appears in neither inputs nor outputs. */
typedef struct rnncc_state_info {
  const rnncc_tensor_info *tensor; /* shape at the batch's maximum */
  int32_t batch_axis;              /* the axis that is cut into slots, -1 if there is none */
  int32_t slots;                   /* 1 if there is no batch axis */
} rnncc_state_info;

typedef struct rnncc_info {
  uint32_t struct_size;
  const char *name;           /* of the model; in a bundle of several, the name that it has there */
  const char *model_version;  /* of the model file, "" if it has none */
  const char *isa;            /* the vectors that the kernels were built for, such as "avx512" */
  const char *target;         /* as given to --target; of several the one that was chosen */
  const char *weights_sha256; /* 64 hex digits, over the packed weights, of all targets and networks */
  const char *build;          /* compiler version, options, model hash: a one-line record */
  size_t weights_bytes;       /* that this network reads, on this target; the module may have more */
  size_t arena_bytes;         /* working memory of one context, beside the gradients */
  int32_t n_dims, n_inputs, n_outputs, n_states;
  uint32_t dim_size, tensor_size, state_size; /* of an element of the arrays, in bytes */
  const rnncc_dim_info *dims;                 /* see rnncc_dim_at() */
  const rnncc_tensor_info *inputs, *outputs;  /* see rnncc_input_at() and rnncc_output_at() */
  const rnncc_state_info *states;             /* see rnncc_state_at() */
  /* Weights that weights_set() can set, of a module of --weights=mutable; see rnncc_weight_at(). Their shapes are
   * fixed.
   */
  const rnncc_tensor_info *weights;
  int32_t n_weights;
  int32_t unused; /* so that what comes next is no older header's padding: not read */
  /* The most that calls take of a thread's stack, of this network for this target, whatever its inputs: computed from
   * the machine code, and an allowance for libc. What a host's own functions take, such as parallel_for, is not in it,
   * nor what handlers of signals do. 0: not known, as of sources of --emit=c, which any compiler may have compiled. */
  size_t run_stack_bytes;    /* of the caller, in run(), backward(), backward_from() and step() */
  size_t call_stack_bytes;   /* of the caller, in any function: model_create() takes most */
  size_t worker_stack_bytes; /* of a worker, or of a thread that parallel_for has. 0, too: there are none */
} rnncc_info;

/* New numbers of a weight, for weights_set(): row-major, contiguous, aligned to the element. */
typedef struct rnncc_weight {
  uint32_t struct_size; /* sizeof(rnncc_weight); of an array the first one's counts */
  rnncc_dtype dtype;
  const char *name; /* as info.weights has it */
  const void *data; /* only read, until weights_set() returns */
  size_t bytes;     /* exactly those of its shape */
} rnncc_weight;

typedef struct rnncc_model rnncc_model;
typedef struct rnncc_context rnncc_context;

/* A host's own function that runs `body(arg, 0..n-1)` on n threads at once and returns when all are done. The bodies
 * wait for each other: on fewer threads, one after the other, they would wait for ever. With options.by_steps they do
 * not: it may run them in any order, on any threads, or all on its own. */
typedef void (*rnncc_parallel_for)(void *host, int n, void (*body)(void *arg, int index), void *arg);

typedef uint64_t rnncc_pool_body(void *arg, int32_t index);

/*
 * Threads that models share, those of different modules, too. A host makes it by pool_create() of any module's table,
 * names it in the options of models, and ends it by pool_destroy() of any; between, it may read `threads` and ask
 * waiting(). The rest is what modules of other ages have for each other: functions of the module that made it, which
 * therefore stays loaded until the pool and all models that have it are destroyed, in whichever order.
 */
typedef struct rnncc_pool {
  uint32_t struct_size;
  int32_t threads;  /* the caller of a run counts as one */
  int32_t by_steps; /* as in the options */
  int32_t crowded;  /* more threads than CPUs */
  /* One user more, one less: the threads end with the last. */
  void (*share)(struct rnncc_pool *);
  void (*release)(struct rnncc_pool *);
  /* 1: the threads are the caller's until give_back(). 0: it is to go on alone. */
  int32_t (*take)(struct rnncc_pool *, int32_t priority, int32_t waits);
  void (*give_back)(struct rnncc_pool *);
  /* For whoever has the threads: body(arg, index) for each index below `threads`, at once but by_steps. A body returns
   * the nanoseconds that it has waited for others. */
  void (*for_each)(struct rnncc_pool *, rnncc_pool_body *body, void *arg);
  int32_t (*narrowed)(const struct rnncc_pool *); /* see model_narrowed() */
  int32_t (*waiting)(const struct rnncc_pool *);  /* how many runs wait for the threads now */
} rnncc_pool;

typedef struct rnncc_options {
  uint32_t struct_size; /* sizeof(rnncc_options) of the caller's header */
  int32_t threads;      /* the caller counts as one; at most 1,024. 0: one for each core of the affinity mask, as
                         * far as the cgroup quota allows */
  int32_t bind_threads; /* not 0: pin each worker to a CPU of the mask, of each core one before a second, those
                         * of a NUMA node and a cache in a row; failure to pin is not an error */
  rnncc_parallel_for parallel_for; /* NULL: the module's own pool */
  void *host;                      /* handed to parallel_for */
  /* 0: while a worker is made, or woken by a run, its affinity mask is without the CPU of the thread that does so, and
   * is restored at once; else the kernel often has the two share that CPU for milliseconds. The masks of the host's
   * threads are never set, and a mask that the host gives a worker meanwhile stays. -1: no masks are touched but by
   * bind_threads. */
  int32_t steer_threads;
  /* NULL: workers of its own. Else a model of this module, of any of its networks, whose workers the new one has, too:
   * the fields from threads to steer_threads are then that model's. The workers end with the last model that has them.
   * They are one run's at a time: a run that finds them busy, with a run of any of these models, is done by its
   * caller's thread alone, with the same results, unless it `waits`. */
  rnncc_model *pool_of;
  /* 0: a run of little work, for which the workers would wait longer than they compute, is done by its caller's thread
   * alone; rnncc has weighed that for the threads that it planned for. Not 0: the workers share every run. The results
   * are the same. */
  int32_t share_all;
  int32_t unused; /* where the first version of this ABI ends: not read */
  /* Called on each worker when it starts, with `host` and its number, from 1 on: its name, CPU, scheduling and whatever
   * else a thread has are the host's to set. A worker has at first the scheduling policy and priority of the thread
   * that makes it, no signals but those that its own instructions raise, and the CPU that bind_threads gave it. All
   * have returned when model_create or pool_create does. Threads of a parallel_for are the host's, and get no call. */
  void (*thread_start)(void *host, int32_t worker);
  /* NULL: see pool_of. Else the threads of this pool, which pool_create() of any module has made: the fields from
   * threads to steer_threads, by_steps and thread_start are then the pool's. Workers are one run's at a time, whichever
   * model it is of, as is said of pool_of. Their stacks are what the module needs that made the pool, and 1 MiB at
   * least: of modules that say more than 768 KiB in info.worker_stack_bytes, the one that says most makes it. */
  rnncc_pool *pool;
  /* Not 0: parallel_for need not run the bodies at once: no body waits for another. It is called for each part of a run
   * between two barriers, some thousand times for a recurrent layer of a thousand steps. Each body has a stack of its
   * own, on which no code of the host runs. RNNCC_ERROR_UNSUPPORTED on CPUs other than x86-64, AArch64 and RISC-V. */
  int32_t by_steps;
  /* Not 0: a run that finds the workers busy waits for them, instead of being done by its caller's thread alone. When
   * they are free, the waiting run of the highest priority has them, of equal ones the one that has waited longest. No
   * run is interrupted. */
  int32_t waits;
  int32_t priority;
  int32_t unused_too; /* so that what comes next is no older header's padding: not read */
  /* Not 0: model_create reads all weights and compares their SHA-256 with info.weights_sha256. Where they differ the
   * file was damaged, and there is no model: RNNCC_ERROR_UNSUPPORTED. It takes some 3 ms a megabyte. */
  int32_t check_weights;
  int32_t unused_last; /* as unused_too */
} rnncc_options;

/* One line of a profile: a kernel of the schedule, accumulated over runs since profiling was switched on. */
typedef struct rnncc_profile_entry {
  uint32_t struct_size; /* of each of the array; see rnncc_profile_at() */
  const char *kernel;   /* its schedule's name */
  const char *node;     /* the model's node it serves */
  uint64_t calls, nanoseconds;
  double flops, bytes; /* of one call at the dimensions' optimum */
  /* Of all these calls, at the extents that the runs had. A kernel in a loop counts for each turn. */
  double flops_done, bytes_done;
  rnncc_dtype products; /* the type of what it multiplies and adds; RNNCC_NONE: that is not its work */
} rnncc_profile_entry;

/* What a worker did for a time. */
typedef struct rnncc_span {
  int32_t entry;       /* of the profile; -1: it waited for other workers */
  uint64_t begin, end; /* nanoseconds of CLOCK_MONOTONIC */
} rnncc_span;

/* The caller's memory for what the workers do in a run. */
typedef struct rnncc_trace {
  uint32_t struct_size; /* sizeof(rnncc_trace) */
  uint32_t span_size;   /* sizeof(rnncc_span) */
  int32_t workers;      /* at least model_threads() */
  size_t capacity;      /* spans for each worker */
  rnncc_span *spans;    /* [workers][capacity], in the order of time */
  size_t *counts;       /* [workers]: spans of the last run; more than capacity: the last ones are not there */
} rnncc_trace;

/*
 * Training, in a module of `rnncc --train`. run() then is the forward pass; what it computed stays in the context for
 * backward(), which computes the gradient of the loss for each trained weight, and step() changes the weights by these.
 *
 *   weights     belong to the model, and all its contexts run on them. They begin as the compiled model has them.
 *   gradients   belong to the context. backward() writes them anew; they add up over runs where gradients_keep() has
 *               been called.
 *   threads     whatever changes weights or reads what optimisers keep may be called while contexts run: it writes
 *               weights of its own, and takes turns with its like. A run() or backward() that has begun ends with the
 *               weights that it began with; each that begins after such a call has returned has the new ones, all of
 *               them. A backward() on other weights than its run's is refused. All results are the same, bit for bit,
 *               for any number of threads. With options.waits step() and gradient_norm() wait, as a run does, while
 *               runs have the workers, and the others of these calls may wait for that step().
 *   inputs      must stay as they are from run() to the end of backward().
 *   memory      model_create allocates the weights twice, and what the optimisers keep, twice as much again. The rest
 *               allocates nothing, but for what changes weights while runs read older ones than the newest: weights
 *               once more, as many times as there are contexts at most, which are used again. RNNCC_ERROR_MEMORY then
 *               leaves all as it was.
 */
typedef struct rnncc_training_info {
  uint32_t struct_size;
  uint32_t tensor_size; /* of an element of `parameters`, in bytes */
  int32_t n_parameters;
  int32_t loss;                        /* which of info.outputs is the loss; -1: it is outside of the module */
  const rnncc_tensor_info *parameters; /* the trained weights, f32: rnncc_parameter_at() */
  /* Where the loss is outside: of which of info.outputs backward_from() takes gradients, and of which of info.inputs it
   * has them. They have the types and shapes of these. */
  int32_t n_output_gradients, n_input_gradients;
  const int32_t *output_gradients, *input_gradients;
  /* The running means and variances of BatchNormalization that trains: weights that have no gradient. step() changes
   * them to what the last run has made of them; weights_get and weights_set know them. rnncc_statistic_at() */
  int32_t n_statistics;
  int32_t unused;
  const rnncc_tensor_info *statistics;
} rnncc_training_info;

typedef enum rnncc_rule {
  RNNCC_SGD = 0,   /* with momentum, if it is not 0 */
  RNNCC_ADAM = 1,  /* weight_decay is part of the gradient */
  RNNCC_ADAMW = 2, /* weight_decay is apart from it */
} rnncc_rule;

/* How step() changes the weights: as PyTorch's optimisers of these names do. */
typedef struct rnncc_optimizer {
  uint32_t struct_size; /* sizeof(rnncc_optimizer) */
  rnncc_rule rule;
  float learning_rate; /* not negative, as all these */
  float momentum;      /* of SGD */
  float beta1, beta2;  /* of Adam, below 1 */
  float epsilon;       /* of Adam */
  float weight_decay;
  float max_norm;   /* > 0: gradients whose norm, over all weights, is larger are scaled to it first */
  int32_t nesterov; /* not 0: of SGD, Nesterov's momentum */
  /* The gradients are multiplied by it before all else: 1 / n is for the mean of n that were kept. 0: by 1. A module
   * that has no gradients_keep ignores it: check RNNCC_HAS(training, gradients_keep). */
  float gradient_scale;
} rnncc_optimizer;

typedef struct rnncc_training {
  uint32_t struct_size;
  uint32_t unused;
  const rnncc_training_info *info;

  /* The gradients of the loss of the context's last run, which must have succeeded, on the weights as they are: not
   * after a step() of another context, or weights_set(). */
  rnncc_status (*backward)(rnncc_context *);
  /* A gradient of the last backward(), by the weight's name, in the weight's shape. bytes must be exact. The next run()
   * or step() ends them, for gradient_norm(), too. */
  rnncc_status (*gradient)(rnncc_context *, const char *name, void *data, size_t bytes);
  /* Changes the model's weights by the gradients of the context's last backward(), which can be used once. If a
   * gradient is no finite number: RNNCC_ERROR_VALUE, last_error() names the weight, and all weights stay as they are.
   * Learning rates and all else may be others in each step, but not the rule: steps of Adam do not go on from momentum,
   * or the other way round. RNNCC_ERROR_ARGUMENT, until optimizer_reset(). SGD without momentum keeps nothing, and goes
   * with all. */
  rnncc_status (*step)(rnncc_context *, const rnncc_optimizer *);
  /* The norm of all gradients of the last backward(), before any were scaled. */
  rnncc_status (*gradient_norm)(rnncc_context *, double *norm);
  /* A weight by its name. bytes must be exact. Setting one copies the others: weights_update() sets several at once. */
  rnncc_status (*weights_get)(const rnncc_model *, const char *name, void *data, size_t bytes);
  rnncc_status (*weights_set)(rnncc_model *, const char *name, const void *data, size_t bytes);
  /* Makes the optimisers forget: momentum, Adam's means and how many steps there were. The weights stay. */
  rnncc_status (*optimizer_reset)(rnncc_model *);

  /* backward() of a module of --outer-loss. The program computes a loss of the outputs of the context's last run, and
   * gives its gradients for these; `input_gradients` are buffers, as the outputs of run(). Both in the order of
   * training_info. All must be apart from each other and from the run's inputs. It refuses, and changes nothing, as
   * backward() does. */
  rnncc_status (*backward_from)(rnncc_context *, const rnncc_tensor *output_gradients, size_t n_output_gradients,
                                rnncc_tensor *input_gradients, size_t n_input_gradients);
  /* What the context's next runs draw (Dropout, and all random numbers) is that of this seed: the same for the same
   * seed, on any machine. Without it a context draws what each new one does. A model that draws nothing has no use for
   * it, and it is RNNCC_OK. */
  rnncc_status (*seed)(rnncc_context *, uint64_t seed);

  /* Sets n weights at once: no run has some of them without the others. On failure none has changed, and `why`, of
   * `room` bytes, says what is wrong, if it is given. */
  rnncc_status (*weights_update)(rnncc_model *, const rnncc_weight *weights, size_t n, char *why, size_t room);

  /* Not 0: the gradients of the last backward() are added to those of the context's next ones, until a step() has used
   * them or refused what is not finite. So a batch may be run in parts. 0: what was kept is forgotten. */
  rnncc_status (*gradients_keep)(rnncc_context *, int32_t keep);

  /* From the next step on each step's learning rate and weight decay are, for this weight, multiplied by these, which
   * are 1 at first. A rate of 0 freezes it: nothing of it changes, neither its means nor the count of steps that Adam
   * corrects these by, and its gradient is no part of any norm, nor looked at. */
  rnncc_status (*weight_factors)(rnncc_model *, const char *name, float learning_rate, float weight_decay);

  /*
   * All that training goes on from, but gradients: weights and statistics, what the optimisers keep and how many steps
   * each weight has had, and the context's states, with what Dropout draws next. A training that takes it up has the
   * same bits as one that was never stopped. It is for modules of the same network, whatever they were compiled for;
   * checkpoint_set() refuses what is of another, cut short or damaged, or has weights or means that are not finite, and
   * changes nothing then. checkpoint_get() refuses such numbers, too: RNNCC_ERROR_VALUE, and `data` is no checkpoint.
   * States are taken as they are. `bytes` must be exact, and stay the same for a module. Optimisers' numbers, such as
   * learning rates and weight_factors(), are the caller's.
   */
  size_t (*checkpoint_bytes)(const rnncc_context *);
  rnncc_status (*checkpoint_get)(rnncc_context *, void *data, size_t bytes);
  rnncc_status (*checkpoint_set)(rnncc_context *, const void *data, size_t bytes);
} rnncc_training;

typedef struct rnncc_api {
  uint32_t abi, struct_size;
  const rnncc_info *info;

  /* `options` may be NULL. On failure *out is NULL and *why (if why is given) a static string. */
  rnncc_status (*model_create)(const rnncc_options *options, rnncc_model **out, const char **why);
  void (*model_destroy)(rnncc_model *); /* after all its contexts; NULL is fine */
  int32_t (*model_threads)(const rnncc_model *);

  /* Bytes a context takes; `memory` of that size, 64-byte aligned, makes context_create allocate nothing. The model may
   * know the context: it must be destroyed before its memory is put to any other use. */
  size_t (*context_size)(const rnncc_model *);
  /* On failure *out is NULL and *why (if why is given) a static string. */
  rnncc_status (*context_create)(rnncc_model *, void *memory, size_t bytes, rnncc_context **out, const char **why);
  void (*context_destroy)(rnncc_context *); /* NULL is fine; caller's memory stays the caller's */

  /* Touches weights and working memory and wakes the workers, so that the first run is as fast as the next. Each worker
   * reads its share of each weight matrix first: what is not in memory yet comes to its NUMA node. Weights that can
   * change are in memory since they were packed. */
  rnncc_status (*warmup)(rnncc_context *);

  /* inputs and outputs in the order of info. On any error the outputs' data and the states are untouched. */
  rnncc_status (*run)(rnncc_context *, const rnncc_tensor *inputs, size_t n_inputs, rnncc_tensor *outputs,
                      size_t n_outputs);

  /* slot: index on the batch axis, or -1 for all; a state without that axis belongs to slot 0. data: row-major, the
   * state's shape with the batch axis of length 1 (slot >= 0) or of length slots (slot == -1). bytes must be exact. A
   * fresh context's states are zero. */
  rnncc_status (*state_reset)(rnncc_context *, int32_t slot);
  rnncc_status (*state_get)(rnncc_context *, int32_t state, int32_t slot, void *data, size_t bytes);
  rnncc_status (*state_set)(rnncc_context *, int32_t state, int32_t slot, const void *data, size_t bytes);

  /* on: 1 starts from zero, 0 stops. Entries are valid until the next call on this context. */
  rnncc_status (*profile)(rnncc_context *, int32_t on, const rnncc_profile_entry **entries, size_t *n);

  /* The message of the last call on this context that failed, "" if none did. Valid until the next call on it. */
  const char *(*last_error)(const rnncc_context *);

  /* How many workers have been left with a narrower affinity mask, because the system refused to restore it. It is 0,
   * or else no mask is narrowed any more; see steer_threads. */
  int32_t (*model_narrowed)(const rnncc_model *);

  /* The tables of all networks of the module, this one among them, in the order that `rnncc bundle` was given them.
   * Each has its own name in its info. Models and contexts are of the table that made them. */
  const struct rnncc_api *const *networks;
  int32_t n_networks;

  /* The shapes of all outputs, in their order, of a run with these extents of info's dims: what a buffer must have
   * room for. An axis whose length depends on the data has the most that it can be. shapes: n_outputs of them. */
  rnncc_status (*output_shapes)(rnncc_context *, const int64_t *dims, size_t n_dims, int64_t (*shapes)[RNNCC_MAX_RANK],
                                size_t n_outputs);

  /* From the next run on, while profiling is on, what each worker does is written to this memory, each run from its
   * beginning. It stays the caller's, and must last until trace(context, NULL), which ends that. */
  rnncc_status (*trace)(rnncc_context *, const rnncc_trace *);

  /* Makes threads for models of any module, by the fields of `options` that say how: from threads to steer_threads,
   * by_steps and thread_start. `options` may be NULL. On failure *out is NULL and *why (if why is given) a static
   * string. */
  rnncc_status (*pool_create)(const rnncc_options *options, rnncc_pool **out, const char **why);
  void (*pool_destroy)(rnncc_pool *); /* of any module's; models that have it keep its threads; NULL is fine */

  const rnncc_training *training; /* NULL: the module was not made by --train */

  /*
   * Of a module of --weights=mutable: sets n weights of the model at once. They are packed by the model's threads, into
   * memory of their own. A run that has begun ends with the weights that it began with; each run that begins after
   * weights_set() has returned has the new ones, all of them. Runs do not wait for it, but as they do for other
   * runs: with options.waits until the threads have packed. Calls at once wait for each other, and so do context_create
   * and context_destroy for a call. It allocates; what it no longer needs it keeps for the next call, so that memory
   * does not grow with their number. On failure no weight has changed, and `why`, of `room` bytes, says what is wrong,
   * if it is given; of --profile=edge it is "". RNNCC_ERROR_UNSUPPORTED: the module's weights are constant.
   */
  rnncc_status (*weights_set)(rnncc_model *, const rnncc_weight *weights, size_t n, char *why, size_t room);
  /* Copies the weight as it is now, to `data`, aligned to its element; bytes must be exact. */
  rnncc_status (*weights_get)(rnncc_model *, const char *name, void *data, size_t bytes, char *why, size_t room);
} rnncc_api;

/* Has the struct, which says its own size, this field? Of what the first version of this ABI has it always is. */
#define RNNCC_HAS(it, field) ((it)->struct_size >= (size_t)((const char *)(&(it)->field + 1) - (const char *)(it)))

static inline const rnncc_dim_info *rnncc_dim_at(const rnncc_info *info, int32_t index) {
  return (const rnncc_dim_info *)((const char *)info->dims + (size_t)index * info->dim_size);
}
static inline const rnncc_tensor_info *rnncc_input_at(const rnncc_info *info, int32_t index) {
  return (const rnncc_tensor_info *)((const char *)info->inputs + (size_t)index * info->tensor_size);
}
static inline const rnncc_tensor_info *rnncc_output_at(const rnncc_info *info, int32_t index) {
  return (const rnncc_tensor_info *)((const char *)info->outputs + (size_t)index * info->tensor_size);
}
static inline const rnncc_tensor_info *rnncc_parameter_at(const rnncc_training_info *info, int32_t index) {
  return (const rnncc_tensor_info *)((const char *)info->parameters + (size_t)index * info->tensor_size);
}
static inline const rnncc_tensor_info *rnncc_statistic_at(const rnncc_training_info *info, int32_t index) {
  return (const rnncc_tensor_info *)((const char *)info->statistics + (size_t)index * info->tensor_size);
}
static inline const rnncc_state_info *rnncc_state_at(const rnncc_info *info, int32_t index) {
  return (const rnncc_state_info *)((const char *)info->states + (size_t)index * info->state_size);
}
static inline const rnncc_tensor_info *rnncc_weight_at(const rnncc_info *info, int32_t index) {
  return (const rnncc_tensor_info *)((const char *)info->weights + (size_t)index * info->tensor_size);
}
static inline const rnncc_profile_entry *rnncc_profile_at(const rnncc_profile_entry *entries, size_t index) {
  return (const rnncc_profile_entry *)((const char *)entries + index * entries->struct_size);
}

/* The status in words: "ok", "argument", ..., "unsupported"; "unknown" if it is none. */
static inline const char *rnncc_status_name(rnncc_status status) {
  switch (status) {
  case RNNCC_OK:
    return "ok";
  case RNNCC_ERROR_ARGUMENT:
    return "argument";
  case RNNCC_ERROR_SHAPE:
    return "shape";
  case RNNCC_ERROR_BOUND:
    return "bound";
  case RNNCC_ERROR_DTYPE:
    return "dtype";
  case RNNCC_ERROR_SIZE:
    return "size";
  case RNNCC_ERROR_VALUE:
    return "value";
  case RNNCC_ERROR_MEMORY:
    return "memory";
  case RNNCC_ERROR_UNSUPPORTED:
    return "unsupported";
  }
  return "unknown";
}

/* Bytes that an element takes in a buffer; 0 if it is no type. */
static inline size_t rnncc_dtype_size(rnncc_dtype dtype) {
  switch (dtype) {
  case RNNCC_F64:
  case RNNCC_I64:
  case RNNCC_U64:
    return 8;
  case RNNCC_F32:
  case RNNCC_I32:
  case RNNCC_U32:
    return 4;
  case RNNCC_F16:
  case RNNCC_BF16:
  case RNNCC_I16:
  case RNNCC_U16:
    return 2;
  case RNNCC_U8:
  case RNNCC_I8:
  case RNNCC_BOOL:
  case RNNCC_F8E4M3FN:
  case RNNCC_F8E4M3FNUZ:
  case RNNCC_F8E5M2:
  case RNNCC_F8E5M2FNUZ:
  case RNNCC_F8E8M0:
  case RNNCC_F4E2M1:
  case RNNCC_I4:
  case RNNCC_U4:
  case RNNCC_I2:
  case RNNCC_U2:
    return 1;
  case RNNCC_NONE:
    return 0;
  }
  return 0;
}

/*
 * abi: RNNCC_ABI of the caller's header. NULL and *why (if why is given): another ABI, or the CPU lacks a feature.
 * rnncc_load() of rnncc_loader.h asks, and checks the table's size.
 *
 * A module for several targets returns the table of the best that the CPU can run, or of the one that $RNNCC_ISA names
 * by `isa` or `target` of its info: NULL if it has no such one. Of several networks it returns the first one's, whose
 * `networks` has the others'.
 *
 * A module whose kernels use AMX asks Linux for its registers, which the process then keeps: its signal frames have
 * room for 8 KB more. It is refused, as if the CPU lacked AMX, where a thread's alternate signal stack is too small for
 * that. A run leaves no tile configured on the caller's thread.
 */
#ifdef RNNCC_BUILDING_MODULE
__attribute__((visibility("default")))
#endif
const rnncc_api *
rnncc_module_query(uint32_t abi, const char **why);

typedef const rnncc_api *(*rnncc_module_query_fn)(uint32_t abi, const char **why);

#ifdef __cplusplus
}
#endif
#endif
