/* SPDX-License-Identifier: MIT */
/*
 * What a run must leave alone: the heap, the kernel, the floating-point mode, memory next to the caller's buffers.
 * malloc and its relatives are replaced here by counting ones, unless a sanitizer already replaces them.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "runtime_fake.h"

static _Atomic int heap_calls;

#if !SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

void *malloc(size_t bytes) { return heap_calls++, __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return heap_calls++, __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { return heap_calls++, __libc_realloc(old, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return heap_calls++, __libc_memalign(alignment, bytes); }
void free(void *memory) { heap_calls++, __libc_free(memory); }
#endif

typedef struct Stream {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
} Stream;

static Stream open_stream(int threads) {
  Stream it = {.api = rnncc_module_query(RNNCC_ABI, NULL)};
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  assert_int_equal(it.api->model_create(&options, &it.model, NULL), RNNCC_OK);
  assert_int_equal(it.api->context_create(it.model, NULL, 0, &it.context, NULL), RNNCC_OK);
  assert_int_equal(it.api->warmup(it.context), RNNCC_OK);
  return it;
}

static void close_stream(Stream *it) {
  it->api->context_destroy(it->context);
  it->api->model_destroy(it->model);
}

/* From here on the kernel kills this process for any system call but exit_group. */
static int forbid_system_calls(void) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog filter = {sizeof program / sizeof *program, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

enum { NO_FILTER = 2 };

static int status_of_child(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return status;
}

static void the_filter_does_kill(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    if (forbid_system_calls()) _exit(NO_FILTER);
    syscall(SYS_getpid);
    _exit(0);
  }
  assert_true(WIFSIGNALED(status_of_child(child)));
}

#if !SANITIZED

static void run_does_not_touch_the_heap(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    FakeCall call;
    fake_call_init(&call, 5, 3, 1);
    Stream it = open_stream(threads);
    int before = heap_calls;
    assert_true(before > 0); /* the counters work */
    for (int i = 0; i < 1000; i++) assert_int_equal(fake_call_run(it.api, it.context, &call), RNNCC_OK);
    call.lengths[0] = -1;
    assert_int_equal(fake_call_run(it.api, it.context, &call), RNNCC_ERROR_VALUE); /* a failing run does not, either */
    assert_int_equal(heap_calls, before);
    close_stream(&it);
  }
}

static void run_with_one_thread_makes_no_system_call(void **state) {
  (void)state;
  FakeCall call;
  fake_call_init(&call, 5, 3, 1);
  Stream it = open_stream(1);
  pid_t child = fork();
  if (child == 0) {
    if (forbid_system_calls()) _exit(NO_FILTER);
    int failures = 0;
    for (int i = 0; i < 1000; i++) failures += fake_call_run(it.api, it.context, &call) != RNNCC_OK;
    _exit(failures > 0);
  }
  int status = status_of_child(child);
  close_stream(&it);
  assert_int_equal(status, 0);
}

#endif

#if defined __x86_64__

enum { UPWARD = 0x4000, FLUSH_AND_DAZ = 0x8040 }; /* bits of MXCSR */
static _Atomic int wrong_modes;

static void expect_flushing(const Team *team) {
  (void)team;
  unsigned mode = __builtin_ia32_stmxcsr() & ~0x3fu; /* without the sticky flags */
  if (mode != (0x1f80 | FLUSH_AND_DAZ)) wrong_modes++;
}

static void the_callers_float_mode_is_kept_and_the_schedules_fixed(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    FakeCall call;
    fake_call_init(&call, 5, 3, 1);
    Stream it = open_stream(threads);
    unsigned saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80 | UPWARD | 0x10); /* an unusual mode, and one sticky flag */
    unsigned before = __builtin_ia32_stmxcsr();
    fake_hook = expect_flushing;
    rnncc_status status = fake_call_run(it.api, it.context, &call);
    fake_hook = NULL;
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved);
    assert_int_equal(status, RNNCC_OK);
    assert_int_equal(after, before);
    assert_int_equal(wrong_modes, 0);
    close_stream(&it);
  }
}

#elif defined __aarch64__

static uint64_t read_fpcr(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}

static _Atomic int wrong_modes;

static void expect_flushing(const Team *team) {
  (void)team;
  if (read_fpcr() != 1u << 24) wrong_modes++;
}

static void the_callers_float_mode_is_kept_and_the_schedules_fixed(void **state) {
  (void)state;
  FakeCall call;
  fake_call_init(&call, 5, 3, 1);
  Stream it = open_stream(2);
  uint64_t saved = read_fpcr(), upward = saved | 1u << 22;
  __asm__ volatile("msr fpcr, %0" ::"r"(upward));
  fake_hook = expect_flushing;
  rnncc_status status = fake_call_run(it.api, it.context, &call);
  fake_hook = NULL;
  uint64_t after = read_fpcr();
  __asm__ volatile("msr fpcr, %0" ::"r"(saved));
  assert_int_equal(status, RNNCC_OK);
  assert_true(after == upward);
  assert_int_equal(wrong_modes, 0);
  close_stream(&it);
}

#endif

/* A buffer of `bytes` between two pages that may not be touched, flush against the one before or the one after. */
typedef struct Guarded {
  unsigned char *pages;
  void *data;
} Guarded;

static Guarded guard(size_t bytes, int at_end) {
  size_t page = sysconf(_SC_PAGESIZE);
  unsigned char *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(pages != MAP_FAILED && bytes <= page);
  assert_int_equal(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
  return (Guarded){pages, at_end ? pages + 2 * page - bytes : pages + page};
}

static void release(Guarded it) { munmap(it.pages, 3 * sysconf(_SC_PAGESIZE)); }

static void buffers_may_touch_unmapped_pages(void **state) {
  (void)state;
  Stream it = open_stream(2);
  for (int at_end = 0; at_end < 2; at_end++)
    for (int64_t T = 0; T <= 5; T++) {
      FakeCall call;
      fake_call_init(&call, T, 3, 1);
      size_t y_bytes = sizeof(float) * T * 3 * FAKE_F, last_bytes = sizeof(float) * 3 * FAKE_F;
      Guarded buffers[5] = {guard(call.inputs[0].bytes, at_end), guard(call.inputs[1].bytes, at_end),
                            guard(call.inputs[2].bytes, at_end), guard(y_bytes, at_end), guard(last_bytes, at_end)};
      for (int i = 0; i < FAKE_INPUTS; i++) {
        memcpy(buffers[i].data, call.inputs[i].data, call.inputs[i].bytes);
        call.inputs[i].data = buffers[i].data;
      }
      call.outputs[0].data = buffers[3].data, call.outputs[0].bytes = y_bytes;
      call.outputs[1].data = buffers[4].data, call.outputs[1].bytes = last_bytes;
      assert_int_equal(fake_call_run(it.api, it.context, &call), RNNCC_OK);
      for (int i = 0; i < 5; i++) release(buffers[i]);
    }
  close_stream(&it);
}

static void a_context_stays_within_its_memory(void **state) {
  (void)state;
  const rnncc_api *api = rnncc_module_query(RNNCC_ABI, NULL);
  rnncc_model *model;
  assert_int_equal(api->model_create(NULL, &model, NULL), RNNCC_OK);
  size_t bytes = api->context_size(model);
  for (int at_end = 0; at_end < 2; at_end++) {
    FakeCall call;
    fake_call_init(&call, FAKE_T, FAKE_B, 1);
    Guarded memory = guard(bytes, at_end);
    rnncc_context *context;
    assert_int_equal(api->context_create(model, memory.data, bytes, &context, NULL), RNNCC_OK);
    int before = heap_calls;
    assert_int_equal(api->warmup(context), RNNCC_OK);
    assert_int_equal(api->profile(context, 1, NULL, NULL), RNNCC_OK);
    assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK);
    assert_int_equal(api->profile(context, 0, NULL, NULL), RNNCC_OK);
    api->context_destroy(context);
    assert_int_equal(heap_calls, before);
    release(memory);
  }
  api->model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if !SANITIZED /* a sanitizer has its own malloc and makes system calls of its own */
      cmocka_unit_test(run_does_not_touch_the_heap),
      cmocka_unit_test(run_with_one_thread_makes_no_system_call),
#endif
      cmocka_unit_test(the_filter_does_kill),
      cmocka_unit_test(the_callers_float_mode_is_kept_and_the_schedules_fixed),
      cmocka_unit_test(buffers_may_touch_unmapped_pages),
      cmocka_unit_test(a_context_stays_within_its_memory),
  };
  return cmocka_run_group_tests_name("runtime_quiet", tests, NULL, NULL);
}
