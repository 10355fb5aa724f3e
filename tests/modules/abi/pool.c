/* SPDX-License-Identifier: MIT */
/*
 * An application whose models, of two modules of tests/unit/runtime_fake.h, share the pool that the first module makes.
 * test_abi.py builds it, and the modules, with headers of several ages.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rnncc_loader.h"

enum { T = 5, B = 2, F = 3 };

static void check(rnncc_status status, const char *what) {
  if (status == RNNCC_OK) return;
  printf("%s: %s\n", what, rnncc_status_name(status));
  exit(1);
}

static void greet(void *host, int32_t worker) { ++((int *)host)[worker]; }

static void run(const rnncc_api *api, rnncc_pool *pool) {
  float x[T * B * F], y[T * B * F], last[B * F], scale = 2;
  int64_t lengths[B] = {T, T - 1};
  rnncc_options options = {.struct_size = sizeof options, .pool = pool, .waits = 1, .priority = 3};
  rnncc_model *model;
  rnncc_context *context;
  const char *why = "";
  for (int i = 0; i < T * B * F; i++) x[i] = (float)(i % 7);
  rnncc_tensor inputs[] = {
      {.dtype = RNNCC_F32, .data = x, .bytes = sizeof x, .rank = 3, .shape = {T, B, F}},
      {.dtype = RNNCC_I64, .data = lengths, .bytes = sizeof lengths, .rank = 1, .shape = {B}},
      {.dtype = RNNCC_F32, .data = &scale, .bytes = sizeof scale},
  };
  rnncc_tensor outputs[] = {
      {.dtype = RNNCC_F32, .data = y, .bytes = sizeof y},
      {.dtype = RNNCC_F32, .data = last, .bytes = sizeof last},
  };
  inputs[0].struct_size = outputs[0].struct_size = sizeof *inputs;
  check(api->model_create(&options, &model, &why), why);
  printf("%d threads, %d narrowed\n", api->model_threads(model), api->model_narrowed(model));
  check(api->context_create(model, NULL, 0, &context, &why), why);
  for (int i = 0; i < 20; i++) {
    check(api->state_reset(context, -1), "state_reset");
    check(api->run(context, inputs, 3, outputs, 2), api->last_error(context));
  }
  for (int i = 0; i < T * B * F; i++) printf(" %g", y[i]);
  putchar('\n');
  api->context_destroy(context);
  api->model_destroy(model);
}

int main(int argc, char **argv) {
  char error[256];
  rnncc_library maker, guest;
  rnncc_pool *pool;
  int greeted[3] = {0};
  rnncc_options options = {.struct_size = sizeof options, .threads = 3, .thread_start = greet, .host = greeted};
  const char *why = "";
  if (argc != 3) return 2;
  if (rnncc_load(argv[1], &maker, error, sizeof error)) return puts(error), 1;
  if (rnncc_load(argv[2], &guest, error, sizeof error)) return puts(error), 1;
  if (!RNNCC_HAS(maker.api, pool_destroy)) return puts("no pools"), 0;
  check(maker.api->pool_create(&options, &pool, &why), why);
  printf("%d threads, %d waiting, greeted %d %d %d\n", pool->threads, pool->waiting(pool), greeted[0], greeted[1],
         greeted[2]);
  run(maker.api, pool);
  run(guest.api, pool);
  guest.api->pool_destroy(pool);
  rnncc_unload(&guest);
  rnncc_unload(&maker);
  return 0;
}
