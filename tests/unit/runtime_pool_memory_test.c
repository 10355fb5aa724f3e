/* SPDX-License-Identifier: MIT */
/* What a pool takes is given back when it ends, whichever allocation fails; no pool is half a pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "pool.h"
#include "runtime_fake.h"

/* ---- the runtime's allocations, by the linker's --wrap; mmap64 is mmap where offsets have 64 bits ---- */

enum { NEVER = -1 };
static int until_failure = NEVER; /* allocations that still succeed */
static int allocated;             /* less what was freed */
static int64_t mapped;            /* bytes, less those that were unmapped */

static bool fails(void) {
  if (until_failure == NEVER) return false;
  return until_failure-- == 0;
}

void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *memory, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *memory, size_t bytes);

static void *counted(void *memory) {
  allocated += memory != NULL;
  return memory;
}

void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : counted(__real_calloc(count, bytes)); }

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *memory) {
  allocated -= memory != NULL;
  __real_free(memory);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (fails()) return MAP_FAILED;
  if (flags & MAP_ANONYMOUS) assert_int_equal(file, -1); /* as some systems ask */
  mapped += (int64_t)bytes;
  return __real_mmap64(at, bytes, protection, flags, file, offset);
}

int __wrap_munmap(void *memory, size_t bytes) {
  mapped -= (int64_t)bytes;
  return __real_munmap(memory, bytes);
}

/* ---- pools ---- */

static void one_by_one(void *host, int n, void (*body)(void *arg, int index), void *arg) {
  (void)host;
  for (int i = 0; i < n; i++) body(arg, i);
}

static void greet(void *host, int32_t worker) { (void)host, (void)worker; }

static const rnncc_options kinds[] = {
    {.threads = 3},
    {.threads = 3, .bind_threads = 1, .thread_start = greet},
    {.threads = 3, .parallel_for = one_by_one, .by_steps = 1},
    {.threads = 3, .parallel_for = one_by_one},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void add_one(void *arg, Team *team) { ((int *)arg)[team->rank]++; }

/* Whether there was a pool, with all its workers. */
static bool made_and_ended(const rnncc_options *options) {
  int before = allocated;
  int64_t mapped_before = mapped;
  Pool *pool = pool_create(options, 0);
  until_failure = NEVER;
  if (pool) {
    int done[3] = {0};
    assert_int_equal(pool_size(pool), 3);
    pool_keep_together(pool);
    pool_run(pool, (Turn){0}, add_one, done);
    for (int rank = 0; rank < 3; rank++) assert_int_equal(done[rank], 1);
    pool_destroy(pool);
  }
  assert_int_equal(allocated, before);
  assert_int_equal(mapped, mapped_before);
  return pool != NULL;
}

static void nothing_is_left(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) assert_true(made_and_ended(&kinds[kind]));
}

/* Allocations of such a pool. */
static int allocations_of(const rnncc_options *options) {
  enum { MANY = 1000 };
  until_failure = MANY;
  Pool *pool = pool_create(options, 0);
  int count = MANY - until_failure;
  until_failure = NEVER;
  pool_destroy(pool);
  return count;
}

/* But for the one that says where workers run, which can be done without. */
static void whichever_allocation_fails_there_is_no_pool(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    int count = allocations_of(&kinds[kind]), made = 0;
    assert_true(count >= 3);
    for (int first = 0; first < count; first++) {
      until_failure = first;
      made += made_and_ended(&kinds[kind]);
    }
    assert_int_equal(made, kinds[kind].bind_threads);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_left),
      cmocka_unit_test(whichever_allocation_fails_there_is_no_pool),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
