/* SPDX-License-Identifier: MIT */
/*
 * The compiler's end of `rnnrun measure`: whatever the runner does, there is a result, in time, and nothing stays open
 * or running. Arguments: rnnrun, and a module (tests/modules/fake_module.c: y = 2 x, z = k + 1, 100 ns in each run).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "open_files.h"
#include "support/clock.h"
#include "tune/runner.h"

static const char *rnnrun, *module;

static const float X[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const int64_t K[2] = {5, -7};
static const RunnerBytes INPUTS[] = {{X, sizeof X}, {K, sizeof K}};

static MeasureRequest request(void) {
  return (MeasureRequest){.module = module, .runs = 7, .limit_seconds = 20, .n_inputs = 2, .inputs = INPUTS};
}

/* Measures by a shell command in which %s is `rnnrun measure`. */
static Measurement measure_by(const char *format, MeasureRequest request) {
  char measure[4096], command[5000];
  snprintf(measure, sizeof measure, "%s measure", rnnrun);
  const char *place = strstr(format, "%s");
  int before = (int)(place ? place - format : (long)strlen(format));
  snprintf(command, sizeof command, "%.*s%s%s", before, format, place ? measure : "", place ? place + 2 : "");
  return measure_module(arena, command, &request);
}

static void times_and_outputs_arrive(void **state) {
  (void)state;
  MeasureRequest wanted = request();
  wanted.outputs = true;
  Measurement measurement = measure_by("%s", wanted);
  assert_string_equal(measurement.message ? measurement.message : "", "");
  assert_int_equal(measurement.status, MEASURE_OK);
  assert_int_equal(measurement.runs, 7);
  assert_int_equal((int)(1000 * measurement.median_us), 100);
  assert_string_equal(measurement.isa, "plain");
  assert_int_equal(measurement.n_outputs, 2);
  assert_int_equal(measurement.outputs[0].size, sizeof X);
  const float *y = measurement.outputs[0].data;
  assert_int_equal((uintptr_t)y % sizeof *y, 0);
  for (int i = 0; i < 12; i++) assert_true(y[i] == 2 * X[i]);
}

static void crashes_hangs_and_refusals_are_distinguished(void **state) {
  (void)state;
  MeasureRequest short_limit = request();
  short_limit.limit_seconds = 0.3;
  assert_int_equal(measure_by("FAKE_MODULE_RUN=crash %s", request()).status, MEASURE_CRASHED);
  assert_int_equal(measure_by("FAKE_MODULE_RUN=exit %s", request()).status, MEASURE_CRASHED);
  assert_int_equal(measure_by("FAKE_MODULE_RUN=hang %s", short_limit).status, MEASURE_HUNG);
  Measurement refused = measure_by("FAKE_MODULE_REFUSES=1 %s", request());
  assert_int_equal(refused.status, MEASURE_FAILED);
  assert_non_null(strstr(refused.message, "lacks avx512f"));
}

/* Each command, and a part of the message. */
static void a_runner_that_does_not_work_fails(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"no-such-runner-anywhere", "not found"},
      {"exit 3", "exit code 3: it says nothing"},
      {"echo oops >&2; exit 1", "exit code 1: oops"},
      {"echo nonsense", "expected"},
      {"%s | head -c 100", "ends early"},
      {"%s | head -c -5", "not those that it announces"},
      {"%s; echo more", "not those that it announces"},
      {"echo '{}'", "version is missing"},
      {"echo '{\"version\": 1, \"format\": \"x\"}'", "expected the format \"rnncc-measurement\", found \"x\""},
      {"echo '{\"version\": 1, \"format\": \"rnncc-measurement\", \"status\": \"good\"}'",
       "expected a status of ok, crashed, hung or failed, found \"good\""},
      {"yes | head -c 3000000", "expected"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Measurement measurement = measure_by(cases[i][0], request());
    assert_int_equal(measurement.status, MEASURE_FAILED);
    if (!strstr(measurement.message, cases[i][1])) fail_msg("%s: %s", cases[i][0], measurement.message);
  }
}

/* The module is larger than a pipe's buffer: writing to a runner that does not read must not end this process. */
static void a_runner_that_does_not_read_is_not_waited_for(void **state) {
  (void)state;
  char *large = calloc(1, 1 << 20);
  RunnerBytes inputs[] = {{large, 1 << 20}};
  MeasureRequest much = request();
  much.n_inputs = 1, much.inputs = inputs;
  assert_int_equal(measure_by("exec 0<&-; exit 4", much).status, MEASURE_FAILED);
  free(large);
}

static void a_runner_that_hangs_is_killed_with_its_children(void **state) {
  (void)state;
  MeasureRequest impatient = request();
  impatient.limit_seconds = impatient.patience_seconds = 0.1;
  double start = seconds_now();
  assert_int_equal(measure_by("sleep 100 & sleep 100", impatient).status, MEASURE_HUNG);
  assert_true(seconds_now() - start < 20);
}

/* As ssh does, which may leave a master connection behind. */
static void a_process_that_keeps_stderr_open_is_not_waited_for(void **state) {
  (void)state;
  double start = seconds_now();
  assert_int_equal(measure_by("%s; sleep 100 >/dev/null &", request()).status, MEASURE_OK);
  assert_true(seconds_now() - start < 20);
}

static void no_descriptor_is_left_open(void **state) {
  (void)state;
  int before = open_files();
  measure_by("%s", request());
  measure_by("no-such-runner-anywhere", request());
  assert_int_equal(open_files(), before);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  rnnrun = arguments[1], module = arguments[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(times_and_outputs_arrive),
      cmocka_unit_test(crashes_hangs_and_refusals_are_distinguished),
      cmocka_unit_test(a_runner_that_does_not_work_fails),
      cmocka_unit_test(a_runner_that_does_not_read_is_not_waited_for),
      cmocka_unit_test(a_runner_that_hangs_is_killed_with_its_children),
      cmocka_unit_test(a_process_that_keeps_stderr_open_is_not_waited_for),
      cmocka_unit_test(no_descriptor_is_left_open),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
