/* SPDX-License-Identifier: MIT */
/* A context: one block of memory, from the caller or the heap, that holds all a run needs. */
#include "context.h"
#include "memory.h"
#ifdef RNNCC_MUTABLE
#include "weights.h"
#endif

enum { PAGE_BYTES = 4096 /* the smallest; touching some pages twice does no harm */ };

/* Parts of the block, one after the other. With no base it only counts. */
typedef struct Block {
  unsigned char *base;
  size_t used;
} Block;

static void *block_take(Block *block, size_t count, size_t bytes) {
  void *part = block->base ? block->base + block->used : NULL;
  block->used += (count * bytes + CONTEXT_ALIGNMENT - 1) / CONTEXT_ALIGNMENT * CONTEXT_ALIGNMENT;
  return part;
}

static void block_take_states(Block *block, const Module *module, unsigned char **states) {
  for (int i = 0; i < module->info.n_states; i++) {
    unsigned char *state = block_take(block, 1, module->states[i].bytes);
    if (states) states[i] = state;
  }
}

/* Lays the context out from `base` on (NULL: only counts) and returns the bytes it takes. */
static size_t context_lay_out(rnncc_context *context, const Module *module, unsigned char *base) {
  const rnncc_info *info = &module->info;
  Block block = {base, 0};
  block_take(&block, 1, sizeof *context);
  context->dims = block_take(&block, info->n_dims + module->n_data_dims, sizeof *context->dims);
  context->inputs = block_take(&block, module_reads(module), sizeof *context->inputs);
  context->outputs = block_take(&block, module_writes(module), sizeof *context->outputs);
  context->shapes = block_take(&block, info->n_outputs, sizeof *context->shapes);
  context->profile.steps = block_take(&block, module->n_steps, sizeof *context->profile.steps);
  context->entries = block_take(&block, module->n_steps, sizeof *context->entries);
  context->states = block_take(&block, info->n_states, sizeof *context->states);
  block_take_states(&block, module, context->states);
  context->arena = block_take(&block, 1, info->arena_bytes);
#ifdef RNNCC_TRAINS
  context->gradients = block_take(&block, 1, module->training.bytes);
  context->kept = block_take(&block, 1, module->training.trained_bytes);
#endif
  return block.used;
}

size_t context_size(const rnncc_model *model) {
  rnncc_context nowhere;
  return model ? context_lay_out(&nowhere, model->module, NULL) : 0;
}

#ifdef RNNCC_MUTABLE
static void add_reader(const rnncc_model *model, rnncc_context *context) {
  if (model->weights) weights_add_reader(model->weights, &context->reader);
}

static void remove_reader(const rnncc_model *model, rnncc_context *context) {
  if (model->weights) weights_remove_reader(model->weights, &context->reader);
}
#else
static void add_reader(const rnncc_model *model, rnncc_context *context) { (void)model, (void)context; }
static void remove_reader(const rnncc_model *model, rnncc_context *context) { (void)model, (void)context; }
#endif

rnncc_status context_create(rnncc_model *model, void *memory, size_t bytes, rnncc_context **out, const char **why) {
  if (!out) return refused(RNNCC_ERROR_ARGUMENT, MESSAGE("context_create: `out` is NULL"), why);
  *out = NULL;
  if (!model) return refused(RNNCC_ERROR_ARGUMENT, MESSAGE("context_create: the model is NULL"), why);
  if ((uintptr_t)memory % CONTEXT_ALIGNMENT)
    return refused(RNNCC_ERROR_ARGUMENT, MESSAGE("context_create: `memory` is not aligned to 64 bytes"), why);
  size_t size = context_size(model);
  if (memory && bytes < size)
    return refused(RNNCC_ERROR_SIZE, MESSAGE("context_create: `memory` has fewer bytes than context_size() says"), why);
  rnncc_context *context = memory ? memory : memory_take(size);
  if (!context) return refused(RNNCC_ERROR_MEMORY, MESSAGE("context_create: out of memory"), why);
  if (memory) remove_reader(model, context); /* one that was there, and was not destroyed */
  *context = (rnncc_context){.model = model, .owns_memory = !memory};
  context_lay_out(context, model->module, (unsigned char *)context);
  context_state_reset(context, -1);
#ifdef RNNCC_TRAINS
  memset(context->gradients, 0, model->module->training.bytes);
#endif
  add_reader(model, context);
  *out = context;
  return refused(RNNCC_OK, NULL, why);
}

void context_destroy(rnncc_context *context) {
  if (!context) return;
  remove_reader(context->model, context);
  if (context->owns_memory) memory_give(context);
}

/* Each worker reads its share of each matrix first. Pages that are not in memory yet come to the NUMA node of the
 * worker that will use them, and others stay where they are. */
static void touch_weights(const Module *module, const Team *team) {
  int64_t begin, end;
  for (int i = 0; i < module->n_weights || i == 0; i++) {
    module_weights_share(module, team, i, &begin, &end);
    for (int64_t at = begin; at < end; at += PAGE_BYTES) *(const volatile unsigned char *)(module->weights + at);
  }
}

static void touch_pages(void *arg, Team *team) {
  const rnncc_context *context = arg;
  const Module *module = context->model->module;
  int64_t begin, end;
  touch_weights(module, team);
  team_share(team, module->info.arena_bytes, &begin, &end);
  for (int64_t at = begin; at < end; at += PAGE_BYTES) {
    volatile unsigned char *page = context->arena + at;
    *page = *page; /* what a run has left for backward() stays */
  }
}

rnncc_status context_warmup(rnncc_context *context) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  pool_run(context->model->pool, context->model->turn, touch_pages, context);
  return RNNCC_OK;
}
