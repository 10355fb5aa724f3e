/* SPDX-License-Identifier: MIT */
/* Factors that a convolution's epilogue takes instead of a division give the same numbers, for all bytes: both are
 * computed in floats here. Usual scales have such factors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/conv/second_step.h"

static int bounded(float x, const SecondStep *s) {
  return x<(float)s->least ? s->least : x>(float) s->most ? s->most : (int)x;
}

/* volatile: each operation is rounded. */
static int by_division(const SecondStep *s, int y, int r) {
  volatile float a = (float)y * s->y_scale, b = (float)(r - s->residual_zero) * s->residual_scale;
  volatile float sum = s->has_residual ? a + b : a, quotient = sum / s->scale, x = quotient + s->before_rounding;
  return bounded(nearbyintf(x), s);
}

static int by_factors(const SecondStep *s, const SecondFactors *f, int y, int r) {
  volatile float a = (float)y * f->of_y, b = s->has_residual ? (float)r * f->of_residual : 0, rest = b + f->addend;
  volatile float x = rest + a;
  return bounded(nearbyintf(x), s);
}

/* False: it has none. */
static bool factors_agree(const SecondStep *s) {
  SecondFactors factors;
  if (!second_step_factors(s, &factors)) return false;
  for (int y = s->y_least; y <= s->y_most; y++)
    for (int r = s->has_residual ? s->residual_least : 0; r <= (s->has_residual ? s->residual_most : 0); r++)
      if (by_factors(s, &factors, y, r) != by_division(s, y, r)) fail_msg("differs for %d and %d", y, r);
  return true;
}

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }
static float random_scale(uint32_t *state) { return 0.005f + (float)(next_random(state) >> 8) * 0x1p-28f; }

static SecondStep random_step(uint32_t *state, bool has_residual) {
  int zero = (int)(next_random(state) >> 24), late = (int)(next_random(state) >> 24);
  SecondStep step = {.y_least = -zero, .y_most = 255 - zero, .least = -late, .most = 255 - late};
  step.y_scale = random_scale(state);
  step.scale = random_scale(state);
  step.has_residual = has_residual;
  step.residual_most = 255;
  step.residual_zero = (int)(next_random(state) >> 24);
  step.residual_scale = random_scale(state);
  return step;
}

static void usual_scales_have_factors(void **state) {
  (void)state;
  uint32_t random = 1;
  int without = 0;
  for (int i = 0; i < 100; i++) {
    SecondStep step = random_step(&random, i % 4);
    without += !factors_agree(&step);
  }
  assert_in_range(without, 0, 2);
}

/* Of these, every second sum ends in a half. */
static void halves_agree(void **state) {
  (void)state;
  uint32_t random = 2;
  for (int zero = 0; zero < 3; zero++) {
    SecondStep step = random_step(&random, true);
    step.y_scale = step.residual_scale = 0.5f, step.scale = 1;
    step.before_rounding = (float)zero, step.least = 0, step.most = 255;
    assert_true(factors_agree(&step));
  }
}

static void unusual_scales_are_divided(void **state) {
  (void)state;
  uint32_t random = 3;
  SecondFactors factors;
  SecondStep step = random_step(&random, true);
  step.scale = 1e-9f;
  assert_false(second_step_factors(&step, &factors));
  step.scale = INFINITY;
  assert_false(second_step_factors(&step, &factors));
  step.scale = NAN;
  assert_false(second_step_factors(&step, &factors));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(usual_scales_have_factors),
      cmocka_unit_test(halves_agree),
      cmocka_unit_test(unusual_scales_are_divided),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
