/* SPDX-License-Identifier: MIT */
/* The text form that the schedules of all families share: a printed schedule is read back, and a wrong text is refused
 * with the part that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "kernels/conv/convolution.h"
#include "kernels/recurrent/variant.h"

static void all_that_is_printed_is_read_back(const ScheduleKind *const *kinds) {
  for (int k = 0; kinds[k]; k++) {
    Knobs knobs = {{0}};
    int n = 0;
    for (; kinds[k]->knobs[n].name; n++) knobs.value[n] = n % 2 ? kinds[k]->knobs[n].max : kinds[k]->knobs[n].min;
    assert_in_range(n, 1, MAX_SCHEDULE_KNOBS);
    const char *text = schedule_print(arena, kinds[k], &knobs);
    ParsedSchedule parsed;
    const char *wrong = schedule_parse(kinds, text, &parsed);
    if (wrong) fail_msg("%s: refused at `%s`", text, wrong);
    assert_ptr_equal(parsed.kind, kinds[k]);
    assert_true(schedule_is_whole(&parsed));
    assert_memory_equal(&parsed.knobs, &knobs, sizeof knobs);
  }
}

static void every_family_reads_what_it_prints(void **state) {
  (void)state;
  all_that_is_printed_is_read_back(convolution_kinds);
  all_that_is_printed_is_read_back(recurrent_kinds);
}

static void only_named_knobs_are_set(void **state) {
  (void)state;
  RecurrentVariant variant = {.workers = 5, .chunk = 7};
  ParsedSchedule parsed;
  assert_null(schedule_parse(recurrent_kinds, "input=step,hide=1,workers=2", &parsed));
  assert_false(schedule_is_whole(&parsed));
  schedule_set_named(&parsed, &variant.knobs);
  assert_int_equal(variant.input, INPUT_WITH_STEP);
  assert_int_equal(variant.hide, 1);
  assert_int_equal(variant.workers, 2);
  assert_int_equal(variant.chunk, 7);
}

static void the_part_that_is_wrong_is_named(void **state) {
  (void)state;
  static const struct {
    const ScheduleKind *const *kinds;
    const char *text, *wrong;
  } rows[] = {
      {recurrent_kinds, "", ""},
      {recurrent_kinds, "workers", "workers"},
      {recurrent_kinds, "workers=", "workers="},
      {recurrent_kinds, "workers=0", "workers=0"},
      {recurrent_kinds, "workers=1025", "workers=1025"},
      {recurrent_kinds, "workers=2x", "workers=2x"},
      {recurrent_kinds, "workers=2,", ""},
      {recurrent_kinds, "workers=2,workers=3", "workers=3"},
      {recurrent_kinds, "work=2", "work=2"},
      {recurrent_kinds, "input=1", "input=1"},
      {recurrent_kinds, "input=steps,hide=1", "input=steps,hide=1"},
      {recurrent_kinds, "direct,workers=2", "direct,workers=2"},
      {convolution_kinds, "", ""},
      {convolution_kinds, "direct,", ""},
      {convolution_kinds, "directly,oc=2", "directly,oc=2"},
      {convolution_kinds, "oc=2", "oc=2"},
      {convolution_kinds, "direct,oc=2,k=2,px=1", "k=2,px=1"},
      {convolution_kinds, "winograd,oc=99999999", "oc=99999999"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ParsedSchedule parsed;
    const char *wrong = schedule_parse(rows[i].kinds, rows[i].text, &parsed);
    if (!wrong || strcmp(wrong, rows[i].wrong) != 0)
      fail_msg("%s: expected `%s` to be refused, found `%s`", rows[i].text, rows[i].wrong, wrong ? wrong : "nothing");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_family_reads_what_it_prints),
      cmocka_unit_test(only_named_knobs_are_set),
      cmocka_unit_test(the_part_that_is_wrong_is_named),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
