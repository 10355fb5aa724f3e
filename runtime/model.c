/* SPDX-License-Identifier: MIT */
/* A model: the module's constants and a pool of threads, shared by its contexts and maybe with other models. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "context.h"
#include "sha256.h"
#include "weights.h"

/* The workers: its own, those of another model, or a pool's of some module. */
static Pool *pool_for(const rnncc_options *options) {
  if (options->pool) return pool_join(options->pool, module_stack());
  if (!options->pool_of) return pool_create(options, module_stack());
  pool_share(options->pool_of->pool);
  return options->pool_of->pool;
}

/* Where the module's constants begin and end in the weights, which may be those of other modules, too. */
static size_t weights_begin(const Module *module) {
  size_t begin = module->weight_begins ? module->weight_begins[0] : 0;
  for (int i = 0; module->weight_begins && i < module->n_weights; i++)
    if (module->weight_begins[i] < begin) begin = module->weight_begins[i];
  return begin;
}

static size_t weights_end(const Module *module) {
  size_t end = 0;
  for (int i = 0; i < module->n_weights; i++)
    if (module->weight_ends[i] > end) end = module->weight_ends[i];
  return end;
}

enum { HUGE_BYTES = 1 << 21 }; /* of most CPUs; where they are larger, the system takes those that fit */

/* Asks the system to read weights that are not in memory yet into huge pages, and to map them so. If it cannot, nothing
 * is lost. */
static void prefer_huge_pages(const Module *module) {
  uintptr_t weights = (uintptr_t)module->weights;
  uintptr_t begin = (weights + weights_begin(module) + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1);
  uintptr_t end = (weights + weights_end(module)) & ~(uintptr_t)(HUGE_BYTES - 1);
  if (begin < end) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/* Are the weights what they were when they were packed? */
static bool weights_are_whole(const Module *module) {
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256(module->weights, module->file_weights_bytes, digest);
  sha256_hex(digest, hex);
  return !strcmp(hex, module->info.weights_sha256);
}

/* Large memory is to be in huge pages: kernels go down matrices whose rows are pages apart. */
void *memory_take(size_t bytes) {
  size_t alignment = bytes >= 2 * HUGE_BYTES ? HUGE_BYTES : CONTEXT_ALIGNMENT;
  size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void *memory = aligned_alloc(alignment, whole ? whole : alignment);
  if (memory && alignment == HUGE_BYTES) madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}
void memory_give(void *memory) { free(memory); }

rnncc_status model_create(const Module *module, const rnncc_options *given, rnncc_model **out, const char **why) {
  if (!out) return refused(RNNCC_ERROR_ARGUMENT, "model_create: `out` is NULL", why);
  *out = NULL;
  rnncc_options options;
  rnncc_status status = options_read(given, &options, why);
  if (status) return status;
  if (options.pool_of && !module_is_here(options.pool_of->module))
    return refused(RNNCC_ERROR_ARGUMENT,
                   "options.pool_of is a model of another module, which options.pool may share with", why);
  if (options.check_weights && !weights_are_whole(module))
    return refused(RNNCC_ERROR_UNSUPPORTED,
                   "the weights are not those that were compiled (SHA-256): the file is damaged", why);
  rnncc_model *model = calloc(1, sizeof *model);
  Pool *pool = model ? pool_for(&options) : NULL;
  if (!pool) {
    free(model);
    return refused(RNNCC_ERROR_MEMORY, "model_create: out of memory", why);
  }
#ifdef RNNCC_TRAINS
  struct Trained *trained = trained_create(module);
  if (!trained) {
    pool_destroy(pool);
    free(model);
    return refused(RNNCC_ERROR_MEMORY, "model_create: out of memory", why);
  }
#endif
  *model = (rnncc_model){
      .module = module,
      .pool = pool,
      .turn = {options.priority, options.waits != 0},
      .shares_all = options.share_all != 0,
#ifdef RNNCC_TRAINS
      .trained = trained,
#endif
  };
#ifdef RNNCC_MUTABLE
  if (module->mutable_weights) {
    model->weights = model_weights_create(module, pool, model->turn);
    if (!model->weights) {
      model_destroy(model);
      return refused(RNNCC_ERROR_MEMORY, "model_create: out of memory for the weights", why);
    }
  }
#endif
  prefer_huge_pages(module);
  *out = model;
  return refused(RNNCC_OK, NULL, why);
}

void model_destroy(rnncc_model *model) {
  if (!model) return;
#ifdef RNNCC_MUTABLE
  model_weights_destroy(model->weights);
#endif
  pool_destroy(model->pool);
#ifdef RNNCC_TRAINS
  trained_destroy(model->trained);
#endif
  free(model);
}

int32_t model_threads(const rnncc_model *model) { return model ? pool_size(model->pool) : 0; }

int32_t model_narrowed(const rnncc_model *model) { return model ? pool_narrowed(model->pool) : 0; }
