/* SPDX-License-Identifier: MIT */
/*
 * The weights that a model trains, and what its optimisers keep. They have one layout, that of the gradients, with
 * zeros between tensors, and are seen as rows of floats. A row is cut into pieces of one length: workers share the
 * pieces, and sums are of pieces, in their order.
 *
 * What a run reads is a version of the weights: a row that stays as it is while it is current, and while a run reads
 * it. Whoever changes weights writes another row and publishes that: a run that has begun ends on its own.
 *
 * current: the newest version, which new runs take. Stored by a writer, under the lock (seq_cst). Who has the lock
 * reads it relaxed: what was stored last was stored under the lock. A run reads it first by acquire, which pairs with
 * that store, so that it finds the version whole; that it is still the newest is for the second look to say.
 *
 * readers: of each version, how many runs read it. A run counts itself (seq_cst), then looks (seq_cst) whether
 * `current` is still that version, and if not it takes itself out and begins anew. So if a writer, which stores
 * `current` before it looks at the old version's readers, does not find the run there, it will not read that version
 * any more. Taken out by the run (release), which pairs with the writer's load: what the run has read is read.
 *
 * All else belongs to who has the lock. A run never takes it. In the child of a fork it is free; what threads of the
 * parent were reading stays so for ever, and is not written any more.
 */
#ifndef RNNCC_TRAINED_WEIGHTS_H
#define RNNCC_TRAINED_WEIGHTS_H

#include "context.h"
#include "fork_guard.h"

#ifdef RNNCC_TRAINS

enum { PIECE = 8192 }; /* floats: two of each row are in a core's L1 cache */
enum { NO_RULE = -1 }; /* no step has left anything */

struct TrainedVersion {
  struct TrainedVersion *next; /* in the model's list, to which versions are only added */
  _Atomic int32_t readers;
  int64_t number; /* how often the weights had changed when it became current */
  float *weights;
};

struct Trained {
  int64_t floats, pieces; /* of a row, without the statistics, which stand behind the weights that are trained */
  size_t bytes;           /* of a row, with them */
  ForkGuard *guard;       /* its lock */
  TrainedVersion *_Atomic current;
  TrainedVersion *versions; /* all of them, the current one among them */
  float *first, *second;    /* momentum, or Adam's means */
  double *sums;             /* [pieces] */
  float *factors;           /* [2 * n_parameters]: of the learning rate and the weight decay, of each weight */
  int64_t *steps;           /* [n_parameters]: that have made first and second of each weight what they are */
  const void **numbers;     /* [n_weights()]: of the weights that are being set; NULL: the weight stays */
  int32_t rule;             /* an rnncc_rule: whose these are; NO_RULE: both are 0 */
};

static inline void trained_lock(struct Trained *trained) { fork_guard_lock(trained->guard); }
static inline void trained_unlock(struct Trained *trained) { fork_guard_unlock(trained->guard); }

/* needs: the lock. */
static inline const TrainedVersion *newest_weights(struct Trained *trained) {
  return atomic_load_explicit(&trained->current, memory_order_relaxed);
}
/* needs: the lock. A version that nobody reads, with weights of long ago; NULL: out of memory. It stays a spare one
 * until it is published. */
RUNTIME_LOCAL TrainedVersion *spare_weights(struct Trained *trained);
RUNTIME_LOCAL void publish_trained(struct Trained *trained, TrainedVersion *version);

/* Trained weights, then statistics. */
static inline int n_weights(const ModuleTraining *training) {
  return training->info.n_parameters + training->info.n_statistics;
}
static inline const rnncc_tensor_info *weight_at(const ModuleTraining *training, int i) {
  int trained = training->info.n_parameters;
  return i < trained ? &training->info.parameters[i] : &training->info.statistics[i - trained];
}
static inline size_t weight_bytes(const ModuleTraining *training, int i) {
  const rnncc_tensor_info *info = weight_at(training, i);
  return shape_elements(info->shape, info->rank) * sizeof(float);
}

/* Of the first `count` weights the one of that name; -1: there is none. */
RUNTIME_LOCAL int find_weight_named(const ModuleTraining *training, int count, const char *name);
/* The same, which has to have so many bytes. */
RUNTIME_LOCAL rnncc_status find_trained(const ModuleTraining *training, int count, const char *name, const void *data,
                                        size_t bytes, int *index);

#endif
#endif
