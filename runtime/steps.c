/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <stdlib.h>

#include "fiber.h"
#include "float_mode.h"
#include "indirect.h"

typedef struct StepsWorker {
  Steps *steps;
  int rank;
  Fiber *fiber;
} StepsWorker;

struct Steps {
  int size;
  PoolBody *body; /* of the region */
  void *arg;
  StepsWorker *workers; /* [size] */
};

static void steps_walk(void *arg) {
  const StepsWorker *self = arg;
  Steps *steps = self->steps;
  Team team = {.rank = self->rank, .size = steps->size, .fiber = self->fiber};
  indirect_body(steps->body, steps->arg, &team);
}

/* The mode is the thread's, and each step may have another one. */
static uint64_t steps_go_on(void *arg, int32_t rank) {
  FloatMode host = float_mode_enter();
  fiber_resume(((Steps *)arg)->workers[rank].fiber);
  float_mode_leave(host);
  return 0;
}

void steps_run(Steps *steps, Pool *pool, PoolBody *body, void *arg) {
  steps->body = body;
  steps->arg = arg;
  for (int rank = 0; rank < steps->size; rank++)
    fiber_start(steps->workers[rank].fiber, steps_walk, &steps->workers[rank]);
  do pool_each(pool, steps_go_on, steps);
  while (fiber_runs(steps->workers[0].fiber)); /* all end in the same step: they enter the same barriers */
}

static bool make_fibers(Steps *steps, size_t stack) {
  for (int rank = 0; rank < steps->size; rank++) {
    steps->workers[rank] = (StepsWorker){steps, rank, fiber_create(worker_stack_bytes(stack))};
    if (!steps->workers[rank].fiber) return false;
  }
  return true;
}

Steps *steps_create(int size, size_t stack) {
  Steps *steps = calloc(1, sizeof *steps);
  if (!steps) return NULL;
  *steps = (Steps){.size = size, .workers = calloc((size_t)size, sizeof *steps->workers)};
  if (steps->workers && make_fibers(steps, stack)) return steps;
  steps_destroy(steps);
  return NULL;
}

void steps_destroy(Steps *steps) {
  if (!steps) return;
  for (int rank = 0; steps->workers && rank < steps->size; rank++) fiber_destroy(steps->workers[rank].fiber);
  free(steps->workers);
  free(steps);
}
