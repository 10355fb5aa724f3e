/* SPDX-License-Identifier: MIT */
/* A module as a shared object: loading, unloading, many at once, cut short, of another machine. argv: a module, and a
 * library that is not one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rnncc_loader.h"
#include "runtime_fake.h"

static const char *module_path, *needy_path, *other_path;

static int use_module(const char *path, int threads, int runs) {
  char error[256];
  rnncc_library library;
  rnncc_model *model;
  rnncc_context *context;
  if (rnncc_load(path, &library, error, sizeof error)) return 1;
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  int failures = library.api->model_create(&options, &model, NULL) != RNNCC_OK ||
                 library.api->context_create(model, NULL, 0, &context, NULL) != RNNCC_OK;
  for (int i = 0; i < runs && !failures; i++) {
    FakeCall call;
    fake_call_init(&call, 5, 3, 1);
    failures += fake_call_run(library.api, context, &call) != RNNCC_OK;
  }
  library.api->context_destroy(context);
  library.api->model_destroy(model);
  rnncc_unload(&library);
  return failures;
}

/* Is any part of the file mapped into this process? */
static int is_mapped(const char *path) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) found |= strstr(line, path) != NULL;
  fclose(maps);
  return found;
}

static void a_thousand_loads_and_unloads_leave_nothing(void **state) {
  (void)state;
  const char *file = strrchr(module_path, '/');
  for (int i = 0; i < 1000; i++) assert_int_equal(use_module(module_path, 1 + i % 3, i % 2), 0);
  assert_int_equal(is_mapped(file), 0);
}

static void unloading_at_once_is_safe(void **state) {
  (void)state;
  for (int i = 0; i < 1000; i++) {
    rnncc_library library;
    assert_int_equal(rnncc_load(module_path, &library, NULL, 0), RNNCC_OK);
    rnncc_unload(&library);
    assert_null(library.api);
  }
}

typedef struct Copy {
  char path[64];
  pthread_t thread;
  int failures;
} Copy;

static void copy_file(const char *from, const char *to) {
  char bytes[65536];
  size_t n;
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  assert_true(in && out);
  while ((n = fread(bytes, 1, sizeof bytes, in))) assert_int_equal(fwrite(bytes, 1, n, out), n);
  fclose(in);
  fclose(out);
}

static void *use_copy(void *arg) {
  Copy *copy = arg;
  for (int i = 0; i < 10; i++) copy->failures += use_module(copy->path, 3, 100);
  return NULL;
}

static void eight_modules_live_side_by_side(void **state) {
  (void)state;
  enum { MODULES = 8 };
  Copy copies[MODULES];
  char folder[] = "/tmp/rnncc_modules_XXXXXX";
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < MODULES; i++) {
    copies[i].failures = 0;
    snprintf(copies[i].path, sizeof copies[i].path, "%s/%d.so", folder, i);
    copy_file(module_path, copies[i].path);
  }
  for (int i = 0; i < MODULES; i++) assert_int_equal(pthread_create(&copies[i].thread, NULL, use_copy, &copies[i]), 0);
  for (int i = 0; i < MODULES; i++) pthread_join(copies[i].thread, NULL);
  for (int i = 0; i < MODULES; i++) {
    unlink(copies[i].path);
    assert_int_equal(copies[i].failures, 0);
  }
  rmdir(folder);
}

static void expect_refusal(const char *path, rnncc_status status, const char *message) {
  char error[256] = "";
  rnncc_library library;
  assert_int_equal(rnncc_load(path, &library, error, sizeof error), status);
  assert_null(library.handle);
  assert_null(library.api);
  if (!strstr(error, message)) fail_msg("\"%s\" lacks \"%s\"", error, message);
  assert_int_equal(rnncc_load(path, &library, NULL, 0), status);
}

static void a_file_that_is_not_a_module_is_refused_with_a_reason(void **state) {
  (void)state;
  expect_refusal("/nonexistent/model.so", RNNCC_ERROR_ARGUMENT,
                 "/nonexistent/model.so: cannot open shared object file");
  expect_refusal("model.so", RNNCC_ERROR_ARGUMENT, "./model.so");
  expect_refusal("/proc/self/maps", RNNCC_ERROR_ARGUMENT, "/proc/self/maps");
  expect_refusal(other_path, RNNCC_ERROR_ARGUMENT, "has no symbol rnncc_module_query");
}

/* A pipe that nobody writes to: nothing waits for it. */
static void what_is_no_file_is_refused(void **state) {
  (void)state;
  char folder[] = "/tmp/rnncc_pipe_XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/m.so", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  alarm(60); /* it would hang */
  expect_refusal(path, RNNCC_ERROR_ARGUMENT, "m.so: expected a file, found a folder, a pipe or a device");
  expect_refusal(folder, RNNCC_ERROR_ARGUMENT, "expected a file");
  expect_refusal("/dev/zero", RNNCC_ERROR_ARGUMENT, "/dev/zero: expected a file");
  alarm(0);
  unlink(path);
  rmdir(folder);
}

static void a_module_for_another_cpu_is_refused_with_a_reason(void **state) {
  (void)state;
  expect_refusal(needy_path, RNNCC_ERROR_UNSUPPORTED, "this module needs");
}

/* At places all over the file: it is refused, or nothing that is loaded is missing. */
static void a_module_that_was_cut_short_is_refused(void **state) {
  (void)state;
  enum { CUTS = 200 };
  char path[] = "/tmp/rnncc_cut_XXXXXX", error[256];
  int file = mkstemp(path), refused = 0;
  assert_true(file >= 0);
  copy_file(module_path, path);
  long bytes = lseek(file, 0, SEEK_END);
  for (int i = CUTS - 1; i >= 0; i--) {
    assert_int_equal(ftruncate(file, bytes * i / CUTS), 0);
    rnncc_library library;
    if (rnncc_load(path, &library, error, sizeof error) == RNNCC_OK) {
      assert_int_equal(use_module(path, 2, 1), 0);
      rnncc_unload(&library);
    } else if (strstr(error, "cut short: expected at least ")) {
      refused++;
    } else {
      assert_true(bytes * i / CUTS < 64); /* not even a header */
    }
  }
  assert_true(refused > CUTS / 4); /* symbols for a debugger follow what is loaded */
  close(file);
  unlink(path);
}

/* By the header of a copy, in either byte order. */
static void a_module_of_another_machine_is_named(void **state) {
  (void)state;
  static const struct {
    unsigned char order, machine[2];
    const char *name;
  } others[] = {{ELFDATA2LSB, {EM_S390, 0}, "found one for another machine"},
                {ELFDATA2MSB, {0, EM_PPC64}, "found one for ppc64"},
                {ELFDATA2LSB, {EM_ARM, 0}, "found one for arm of 32 bits"}};
  char path[] = "/tmp/rnncc_machine_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  copy_file(module_path, path);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_int_equal(pwrite(file, &others[i].order, 1, EI_DATA), 1);
    assert_int_equal(pwrite(file, others[i].machine, 2, offsetof(ElfW(Ehdr), e_machine)), 2);
    expect_refusal(path, RNNCC_ERROR_UNSUPPORTED, others[i].name);
    expect_refusal(path, RNNCC_ERROR_UNSUPPORTED, "expected a module for ");
  }
  close(file);
  unlink(path);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  module_path = argv[1], needy_path = argv[2], other_path = argv[3];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thousand_loads_and_unloads_leave_nothing),
      cmocka_unit_test(unloading_at_once_is_safe),
      cmocka_unit_test(eight_modules_live_side_by_side),
      cmocka_unit_test(a_module_that_was_cut_short_is_refused),
      cmocka_unit_test(a_module_of_another_machine_is_named),
      cmocka_unit_test(a_file_that_is_not_a_module_is_refused_with_a_reason),
      cmocka_unit_test(what_is_no_file_is_refused),
      cmocka_unit_test(a_module_for_another_cpu_is_refused_with_a_reason),
  };
  return cmocka_run_group_tests_name("runtime_load", tests, NULL, NULL);
}
