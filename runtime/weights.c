/* SPDX-License-Identifier: MIT */
/* Weights that can change: versions, who reads them, and how a new one is made. */
#include "weights.h"

#include <stdlib.h>
#include <string.h>

#include "float_mode.h"
#include "fork_guard.h"
#include "indirect.h"
#include "repack.h"

#ifdef RNNCC_MUTABLE /* else nothing of it is in the module */

/* The memory of a block. */
typedef struct WeightsBlock {
  int32_t users; /* versions */
  bool owned;    /* else it is the module's */
  unsigned char *data;
} WeightsBlock;

struct WeightsVersion {
  WeightsVersion *next;       /* of those that are no longer current */
  WeightsBlock **blocks;      /* NULL: of a weight that is not kept */
  const unsigned char **data; /* [n_blocks], of the blocks: what runs read */
};

struct ModelWeights {
  const Module *module;
  Pool *pool;
  Turn turn;
  ForkGuard *guard; /* its lock */
  WeightsVersion *_Atomic current;
  WeightsVersion *retired;
  WeightsBlock **spares; /* [n_blocks]: the memory of a block that no version has any more; NULL: none */
  WeightsReader *readers;
  unsigned char *arena; /* of the derivation's runs; NULL: there are none */
  int64_t *dims;        /* of the derivation's runs, which read none: all its shapes are fixed */
};

static const ModuleMutable *table_of(const ModelWeights *w) { return w->module->mutable_weights; }

/* In the child of a fork the lock is free, though a thread of the parent may have been at work. What it guards is whole
 * at any time: lists change by one store, and a version is published by one. */
static void weights_lock(ModelWeights *w) { fork_guard_lock(w->guard); }
static void weights_unlock(ModelWeights *w) { fork_guard_unlock(w->guard); }

/* needs: the lock. */
static WeightsVersion *newest_version(const ModelWeights *w) {
  return atomic_load_explicit(&w->current, memory_order_relaxed);
}

/* A weight that is not kept has no block: what is packed of it has its numbers. */
static bool has_block(const ModelWeights *w, int index) {
  return index >= w->module->info.n_weights || table_of(w)->kept[index];
}

/* ---- blocks ---- */

/* Of bytes that no copy writes all are 0, and stay so. */
static WeightsBlock *new_block(const ModelWeights *w, int index) {
  size_t bytes = table_of(w)->block_bytes[index];
  WeightsBlock *block = calloc(1, sizeof *block);
  unsigned char *data = block ? memory_take(bytes) : NULL;
  if (!data) {
    free(block);
    return NULL;
  }
  memset(data, 0, bytes);
  *block = (WeightsBlock){.owned = true, .data = data};
  return block;
}

static void free_block(WeightsBlock *block) {
  if (block && block->owned) memory_give(block->data);
  free(block);
}

static WeightsBlock *take_block(ModelWeights *w, int index) {
  WeightsBlock *block = w->spares[index];
  w->spares[index] = NULL;
  return block ? block : new_block(w, index);
}

static void leave_block(ModelWeights *w, int index, WeightsBlock *block) {
  if (!block || --block->users > 0) return;
  if (w->spares[index] || !block->owned)
    free_block(block);
  else
    w->spares[index] = block;
}

/* ---- versions ---- */

static void leave_version(ModelWeights *w, WeightsVersion *version) {
  for (int i = 0; i < table_of(w)->n_blocks; i++) leave_block(w, i, version->blocks[i]);
  free(version);
}

static WeightsVersion *empty_version(const ModelWeights *w) {
  size_t n = (size_t)table_of(w)->n_blocks;
  WeightsVersion *version = calloc(1, sizeof *version + n * (sizeof *version->blocks + sizeof *version->data));
  if (!version) return NULL;
  version->blocks = (WeightsBlock **)(version + 1);
  version->data = (const unsigned char **)(version->blocks + n);
  return version;
}

static bool put_block(WeightsVersion *version, int index, WeightsBlock *block) {
  if (!block) return false;
  block->users++;
  version->blocks[index] = block;
  version->data[index] = block->data;
  return true;
}

/* The newest version with new memory for the blocks that change; NULL: out of memory. */
static WeightsVersion *next_version(ModelWeights *w, const bool *changes) {
  WeightsVersion *version = empty_version(w);
  for (int i = 0; version && i < table_of(w)->n_blocks; i++) {
    if (!has_block(w, i) || put_block(version, i, changes[i] ? take_block(w, i) : newest_version(w)->blocks[i]))
      continue;
    leave_version(w, version);
    return NULL;
  }
  return version;
}

static bool is_read(const ModelWeights *w, const WeightsVersion *version) {
  for (WeightsReader *reader = w->readers; reader; reader = reader->next)
    if (atomic_load_explicit(&reader->reading, memory_order_seq_cst) == version) return true;
  return false;
}

/* Leaves those that no run reads. */
static void leave_retired(ModelWeights *w) {
  WeightsVersion **at = &w->retired;
  while (*at) {
    WeightsVersion *version = *at;
    if (is_read(w, version)) {
      at = &version->next;
      continue;
    }
    *at = version->next;
    leave_version(w, version);
  }
}

static void publish_weights(ModelWeights *w, WeightsVersion *version) {
  WeightsVersion *before = newest_version(w);
  atomic_store_explicit(&w->current, version, memory_order_seq_cst);
  before->next = w->retired;
  w->retired = before;
  leave_retired(w);
}

/* ---- readers ---- */

const unsigned char *const *weights_acquire(ModelWeights *w, WeightsReader *reader) {
  const WeightsVersion *version = atomic_load_explicit(&w->current, memory_order_acquire), *seen;
  do {
    seen = version;
    atomic_store_explicit(&reader->reading, seen, memory_order_seq_cst);
    version = atomic_load_explicit(&w->current, memory_order_seq_cst);
  } while (version != seen);
  return version->data;
}

void weights_add_reader(ModelWeights *w, WeightsReader *reader) {
  weights_lock(w);
  reader->next = w->readers;
  w->readers = reader;
  weights_unlock(w);
}

void weights_remove_reader(ModelWeights *w, WeightsReader *reader) {
  weights_lock(w);
  WeightsReader **at = &w->readers;
  while (*at && *at != reader) at = &(*at)->next;
  if (*at) *at = reader->next;
  weights_unlock(w);
}

/* ---- packing ---- */

typedef struct WeightsPacking {
  const ModelWeights *weights;
  const WeightsVersion *version;
  const bool *changes;  /* by block */
  const void **numbers; /* [info.n_weights]: those that are set; NULL where a weight is not */
  const void **inputs;  /* [info.n_weights]: of the derivation */
  const bool *parts;    /* by part of the derivation: whether it is to run */
} WeightsPacking;

/* Of a weight that is not kept only what is set, or what a new model begins with, is ever asked for. */
static const void *source_of(const WeightsPacking *p, int block) {
  const Module *module = p->weights->module;
  if (block < module->info.n_weights && p->numbers[block]) return p->numbers[block];
  return has_block(p->weights, block) ? p->version->data[block] : module->weights + table_of(p->weights)->given[block];
}

static void copy_numbers(const WeightsPacking *p, const Team *team) {
  int64_t begin, end;
  for (int i = 0; i < p->weights->module->info.n_weights; i++) {
    if (!p->numbers[i] || !has_block(p->weights, i)) continue;
    team_share(team, (int64_t)table_of(p->weights)->block_bytes[i], &begin, &end);
    memcpy(p->version->blocks[i]->data + begin, (const char *)p->numbers[i] + begin, (size_t)(end - begin));
  }
}

/* Outputs that the schedule leaves in the arena. */
static void take_staged(const WeightsPacking *p) {
  const Module *derivation = table_of(p->weights)->derivation;
  int first = p->weights->module->info.n_weights;
  for (int i = 0; derivation->staged_outputs && i < derivation->info.n_outputs; i++)
    if (derivation->staged_outputs[i] >= 0 && p->changes[first + i])
      memcpy(p->version->blocks[first + i]->data, p->weights->arena + derivation->staged_outputs[i],
             table_of(p->weights)->block_bytes[first + i]);
}

static void derive_weights(const WeightsPacking *p, Team *team) {
  const Module *derivation = table_of(p->weights)->derivation;
  const WeightsVersion *version = p->version;
  _Atomic int fault = RNNCC_OK;
  Run run = {.inputs = p->inputs,
             .outputs = (void *const *)(version->data + p->weights->module->info.n_weights),
             .arena = p->weights->arena,
             .weights = derivation->weights,
             .dims = p->weights->dims,
             .data_dims = p->weights->dims + derivation->info.n_dims,
             .fault = &fault};
  for (int part = 0; part < derivation->n_parts; part++) {
    if (!p->parts[part]) continue;
    indirect_part(derivation->parts[part], &run, team);
    team_barrier(team);
  }
  if (team->rank == 0) take_staged(p);
  team_barrier(team);
}

static bool copies_of(const WeightsPacking *p, const Team *team, bool adds) {
  const ModuleMutable *table = table_of(p->weights);
  bool any_adds = false;
  for (int i = 0; i < table->n_copies; i++) {
    const ModuleCopy *copy = &table->copies[i];
    if (!p->changes[copy->target]) continue;
    any_adds |= copy->adds != 0;
    if ((copy->adds != 0) == adds)
      repack(copy, source_of(p, copy->source), p->version->blocks[copy->target]->data, team);
  }
  return any_adds;
}

static void pack_weights(void *arg, Team *team) {
  const WeightsPacking *p = arg;
  FloatMode mode = float_mode_enter();
  if (table_of(p->weights)->derivation) derive_weights(p, team);
  copy_numbers(p, team);
  if (copies_of(p, team, false)) {
    team_barrier(team);
    copies_of(p, team, true);
  }
  float_mode_leave(mode);
}

/* Which blocks change, and which parts of the derivation run, if those weights change that have numbers, or if `all`
 * do. */
static void find_changes(const ModelWeights *w, const void *const *numbers, bool all, bool *changes, bool *parts) {
  const ModuleMutable *table = table_of(w);
  int n_weights = w->module->info.n_weights;
  for (int i = 0; i < n_weights; i++) {
    changes[i] = numbers[i];
    if (table->derivation && table->derives[i] >= 0 && (all || numbers[i])) parts[table->derives[i]] = true;
  }
  for (int i = 0; i < table->n_derived; i++) changes[n_weights + i] = parts[table->derived_parts[i]];
  for (int i = 0; i < table->n_copies; i++) changes[table->copies[i].target] |= all || changes[table->copies[i].source];
}

/* needs: the lock. `all`: of a new model, whose weights are in the newest version. False: out of memory. */
static bool set_numbers(ModelWeights *w, const void **numbers, bool all) {
  const Module *derivation = table_of(w)->derivation;
  int n_weights = w->module->info.n_weights, n_blocks = table_of(w)->n_blocks;
  bool *changes = calloc((size_t)(n_blocks + (derivation ? derivation->n_parts : 0)), sizeof *changes);
  bool *parts = changes ? changes + n_blocks : NULL;
  const void **inputs = calloc((size_t)n_weights, sizeof *inputs);
  if (changes && inputs) find_changes(w, numbers, all, changes, parts);
  leave_retired(w); /* runs that have ended since leave memory */
  WeightsVersion *version = changes && inputs ? next_version(w, changes) : NULL;
  if (version) {
    WeightsPacking packing = {w, version, changes, numbers, inputs, parts};
    for (int i = 0; i < n_weights; i++) inputs[i] = source_of(&packing, i);
    pool_run(w->pool, w->turn, pack_weights, &packing);
    publish_weights(w, version);
  }
  free(changes);
  free((void *)inputs);
  return version;
}

/* ---- a model's ---- */

/* The weights as they are in the file; the other blocks are nowhere. */
static WeightsVersion *given_version(const ModelWeights *w) {
  WeightsVersion *version = empty_version(w);
  for (int i = 0; version && i < w->module->info.n_weights; i++) {
    if (!has_block(w, i)) continue;
    WeightsBlock *block = calloc(1, sizeof *block);
    if (block) block->data = (unsigned char *)w->module->weights + table_of(w)->given[i];
    if (!put_block(version, i, block)) return version; /* its owner finds that it is not whole */
  }
  return version;
}

static bool version_is_whole(const ModelWeights *w, const WeightsVersion *version) {
  for (int i = 0; version && i < w->module->info.n_weights; i++)
    if (has_block(w, i) && !version->blocks[i]) return false;
  return version;
}

static bool begin_weights(ModelWeights *w) {
  const Module *derivation = table_of(w)->derivation;
  const void **none = calloc((size_t)w->module->info.n_weights, sizeof *none);
  w->spares = calloc((size_t)table_of(w)->n_blocks, sizeof *w->spares);
  w->guard = fork_guard_create();
  if (derivation) {
    w->arena = memory_take(derivation->info.arena_bytes);
    w->dims = calloc((size_t)(derivation->info.n_dims + derivation->n_data_dims + 1), sizeof *w->dims);
  }
  bool good = none && w->spares && w->guard && ((w->arena && w->dims) || !derivation);
  if (good) atomic_init(&w->current, given_version(w));
  good = good && version_is_whole(w, newest_version(w)) && set_numbers(w, none, true);
  free((void *)none);
  return good;
}

ModelWeights *model_weights_create(const Module *module, Pool *pool, Turn turn) {
  ModelWeights *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->module = module;
  w->pool = pool;
  w->turn = turn;
  if (begin_weights(w)) return w;
  model_weights_destroy(w);
  return NULL;
}

void model_weights_destroy(ModelWeights *w) {
  if (!w) return;
  while (w->retired) {
    WeightsVersion *version = w->retired;
    w->retired = version->next;
    leave_version(w, version);
  }
  if (newest_version(w)) leave_version(w, newest_version(w));
  for (int i = 0; w->spares && i < table_of(w)->n_blocks; i++) free_block(w->spares[i]);
  free(w->spares);
  memory_give(w->arena);
  free(w->dims);
  fork_guard_destroy(w->guard);
  free(w);
}

/* ---- numbers ---- */

bool weights_set_numbers(ModelWeights *w, const void **numbers) {
  weights_lock(w);
  bool good = set_numbers(w, numbers, false);
  weights_unlock(w);
  return good;
}

void weights_get_numbers(ModelWeights *w, int index, void *data) {
  const ModuleMutable *table = table_of(w);
  const Team alone = {.rank = 0, .size = 1};
  weights_lock(w);
  if (has_block(w, index)) memcpy(data, newest_version(w)->data[index], table->block_bytes[index]);
  for (int i = 0; !has_block(w, index) && i < table->n_copies; i++) {
    if (table->copies[i].source != index) continue;
    ModuleCopy back = repack_backwards(&table->copies[i]);
    const void *packed = newest_version(w)->data[back.source];
    repack(&back, packed, data, &alone);
  }
  weights_unlock(w);
}
#endif
