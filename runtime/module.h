/* SPDX-License-Identifier: MIT */
/* The interface between emitted code and the runtime: what a generated unit defines and the runtime reads. */
#ifndef RNNCC_MODULE_H
#define RNNCC_MODULE_H

#include "cpu.h"
#include "names.h"
#include "rnncc.h"
#include "team.h"
#include "wave.h"

/* What a step of the schedule has taken since profiling was switched on. Written by rank 0, or by the worker that runs
 * a layer of a wavefront alone; barriers are between two such workers. */
typedef struct StepRecord {
  uint64_t nanoseconds; /* by rank 0 alone */
  double flops, bytes;
} StepRecord;

typedef struct RunProfile {
  StepRecord *steps; /* [Module.n_steps] */
  rnncc_trace trace; /* spans NULL: none. Each worker writes its own spans and its count */
} RunProfile;

/* The arguments of one run. Shared by all workers; read-only except `data_dims`, `fault` and `profile`. */
typedef struct Run {
  const void *const *inputs;    /* [module_reads()], the caller's data; states arrive in the arena */
  void *const *outputs;         /* [module_writes()], the caller's buffers; those of staged outputs must not be used */
  unsigned char *arena;         /* info.arena_bytes, 64-byte aligned; keeps nothing from run to run */
  const unsigned char *weights; /* Module.weights */
  const unsigned char *const *blocks; /* [ModuleMutable.n_blocks]: weights that can change, of this run; or NULL */
  const unsigned char *parameters;    /* the model's trained weights; NULL where there are none */
  unsigned char *gradients;           /* the context's; working memory until Module.training.backward writes them */
  const int64_t *dims;                /* [info.n_dims]: value of each named dimension in this run */
  int64_t *data_dims;                 /* [Module.n_data_dims]: data-dependent dims, written by the schedule */
  _Atomic int *fault;  /* a kernel that meets an out-of-range value stores an rnncc_status here and goes on */
  int64_t turn;        /* 0 and 1 in turns: kernels may read weights forwards in one run, backwards in the next */
  RunProfile *profile; /* NULL unless profiling; only profile.c uses it */
} Run;

/* Where state i of info.states lives while the schedule runs. Dense, in the state's shape but with the batch axis cut
 * to this run's batch: the value of dimension info.states[i].tensor->dim[batch_axis], or all slots if that is -1. Slots
 * past the batch keep their values. Every other axis of a state is fixed. The runtime fills arena_in before the
 * schedule and reads arena_out after it, if the run succeeds. The two may be the same place, and neither may be
 * overwritten by other values in between. */
typedef struct ModuleState {
  size_t arena_in, arena_out; /* offsets in the arena of the old and the new value */
  size_t bytes;               /* of all slots: what the context keeps */
} ModuleState;

/* A check of input data that must hold before anything runs: every element of input in [lo, hi). */
typedef struct ModuleRangeCheck {
  int32_t input;    /* index in info.inputs; an i32, i64, u8 or bool input */
  int64_t lo, hi;   /* hi is used where hi_dim is -1 */
  int32_t hi_dim;   /* else the bound is this dimension's run-time value, plus hi */
  const char *what; /* e.g. "sequence length", for the message */
} ModuleRangeCheck;

/* One row of the profile: a kernel call of the schedule. */
typedef struct ModuleStep {
  const char *kernel; /* its schedule's name */
  const char *node;   /* the model's node it serves */
  double flops;       /* of one call at the dimensions' optimum */
  double bytes;       /* moved by it */
  rnncc_dtype products;
} ModuleStep;

/* Of a module that trains. */
typedef struct ModuleTraining {
  rnncc_training_info info;
  /* [n_parameters + n_statistics]: bytes from the begin of the model's weights, and of the gradients, among which the
   * statistics have their next values */
  const size_t *places;
  const size_t *initials; /* [n_parameters + n_statistics]: offsets in Module.weights of what they begin as */
  size_t trained_bytes;   /* of all parameters, which come first; what is between them is 0 */
  size_t bytes;           /* of statistics, too */
  int32_t runs_state;     /* in info.states: what counts the runs, for random numbers; -1: none are drawn */
  /* Like Module.schedule, which has run before on the same Run. */
  void (*backward)(const Run *run, Team *team);
} ModuleTraining;

/* One copy that packs weights that can change: for each index within `extents`, outermost first, element to + the sum
 * of index * to_strides of block `target` is, or gets added, the f32 element of block `source` in the same way. */
enum { COPY_RANK = 6 };
typedef struct ModuleCopy {
  int32_t source, target;
  rnncc_dtype dtype; /* of the target: f32, bf16 or f16 */
  int32_t adds;      /* after all copies that do not */
  int32_t rank;
  int64_t from, to, extents[COPY_RANK], from_strides[COPY_RANK], to_strides[COPY_RANK];
} ModuleCopy;

typedef struct Module Module;

/* Weights that can change. A model keeps blocks of memory: first the weights as info.weights has them, then what the
 * derivation computes of them, then what kernels read in a layout of their own. Bytes that no copy writes are 0. */
typedef struct ModuleMutable {
  const size_t *given; /* [info.n_weights]: where Module.weights has a new model's */
  /* [info.n_weights]: whether a model keeps the weight as it is. If not, copies have each of its elements once, and no
   * block that they write has elements of others. */
  const unsigned char *kept;
  int32_t n_blocks;
  const size_t *block_bytes; /* [n_blocks] */
  const ModuleCopy *copies;
  int32_t n_copies;
  const Module *derivation; /* its inputs are all weights, its outputs the derived blocks; NULL: there are none */
  /* [info.n_weights]: which of its parts reads the weight, -1: none; and [n_derived]: which one makes the block. */
  const int32_t *derives, *derived_parts;
  int32_t n_derived;
} ModuleMutable;

/* Everything the runtime knows of a model. Arrays may be NULL where their count is 0. */
struct Module {
  /* All sizes of structs are set. Every axis of an input is fixed or a named dimension itself (dim >= 0). A dimension
   * that no input has takes its maximum. */
  rnncc_info info;
  uint32_t cpu_features;        /* CPU_* bits the kernels use */
  const unsigned char *weights; /* packed, 64-byte aligned; those of other targets and networks may be among them */
  const size_t *weight_ends;    /* [n_weights]: where each constant of them ends */
  const size_t *weight_begins;  /* [n_weights], where modules share the weights; NULL: each where the last one ends */
  int32_t n_weights;            /* 0: not known */
  size_t file_weights_bytes;    /* of all targets and networks: what info.weights_sha256 is of */
  const ModuleState *states;    /* [info.n_states] */
  const ModuleRangeCheck *checks;
  int32_t n_checks;
  const ModuleStep *steps;
  int32_t n_steps;
  int32_t n_data_dims;
  /* A run is shared among the workers if its work is at least that many times what it is at the dimensions' optima: of
   * less, waiting for each other takes longer. */
  double share_from;
  /* Writes the run-time shape of every output (rank values each, in order) for these dims, data-dependent ones last. */
  void (*output_shapes)(const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]);
  /* The same before the run: upper bounds of the shapes. NULL if there are no data-dependent dims. */
  void (*output_room)(const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]);
  /* The inference. Called by every worker of the team at once; all must enter the same barriers. It need not end with
   * one. Denormals are zero and rounding is to nearest throughout. */
  void (*schedule)(const Run *run, Team *team);
  /* Of a derivation, which has no schedule: those of its parts, of which any may be left out. */
  void (*const *parts)(const Run *run, Team *team);
  int32_t n_parts;
  /* [module_writes()]: the arena offset of outputs that the schedule leaves in the arena, because a run can still fault
   * after writing them, or -1 if written in place. NULL if none is staged. */
  const int64_t *staged_outputs;
  ModuleTraining training;              /* all 0: it does not train */
  const ModuleMutable *mutable_weights; /* NULL: none can change */
};

/* Buffers of the caller's: the model's inputs and outputs, and behind them the gradients that backward_from() has. */
static inline int32_t module_reads(const Module *module) {
  return module->info.n_inputs + module->training.info.n_output_gradients;
}
static inline int32_t module_writes(const Module *module) {
  return module->info.n_outputs + module->training.info.n_input_gradients;
}

/* This worker's share of constant i of the weights, or of all of them if i is 0 and the ends are not known. Kernels
 * that share panels read about this share. */
static inline void module_weights_share(const Module *module, const Team *team, int i, int64_t *begin, int64_t *end) {
  int64_t first = module->weight_begins ? (int64_t)module->weight_begins[i]
                  : i                   ? (int64_t)module->weight_ends[i - 1]
                                        : 0;
  int64_t last = (int64_t)(module->n_weights ? module->weight_ends[i] : module->info.weights_bytes);
  team_share(team, last - first, begin, end);
  *begin += first;
  *end += first;
}

/* Defined by the emitted unit; where there are several, by each of them. */
extern const Module rnncc_module;

/* Every worker calls it after schedule step `step`, of a run that is profiled: what it did since its last stamp. Times
 * are those of rank 0. A step may be stamped repeatedly. flops and bytes are those of all workers. */
void module_stamp(const Run *run, Team *team, int step, double flops, double bytes);
/* The same where this worker did the step alone. */
void module_stamp_alone(const Run *run, Team *team, int step, double flops, double bytes);
/* team_barrier() between steps. The wait belongs to the step before. */
void module_meet(const Run *run, Team *team);
static inline void module_barrier(const Run *run, Team *team) {
  if (team->size > 1) module_meet(run, team);
}

#endif
