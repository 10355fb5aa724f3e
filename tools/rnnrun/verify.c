/* SPDX-License-Identifier: MIT */
/* Compares outputs with .npy files, element by element, in double. NaN matches NaN, an infinity itself. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "session.h"
#include "tensors.h"
#include "verbs.h"
#include "verify_reference.h"

typedef struct Comparison {
  int64_t count, mismatches;
  int64_t worst;      /* index of the element furthest beyond, or nearest to, its limit */
  double worst_ratio; /* its |got - expected| / limit; infinite for NaN against a number */
} Comparison;

static int same_bits(const rnncc_tensor *a, const rnncc_tensor *b, int64_t i) {
  size_t size = dtype_bytes(a->dtype);
  return !memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)i * size, size);
}

/* Error over limit: up to 1 is a match. Integers that differ are infinitely wrong. */
static double error_ratio(const Arguments *arguments, const rnncc_tensor *got, const rnncc_tensor *expected,
                          int64_t i) {
  if (same_bits(got, expected, i)) return 0;
  if (!dtype_is_float(got->dtype)) return integer_element(got, i) == integer_element(expected, i) ? 0 : INFINITY;
  double g = any_element(got, i), e = any_element(expected, i);
  if (g == e || (isnan(g) && isnan(e))) return 0;
  if (!isfinite(g) || !isfinite(e)) return INFINITY;
  return fabs(g - e) / (arguments->absolute + arguments->relative * fabs(e));
}

static Comparison compare(const Arguments *arguments, const rnncc_tensor *got, const rnncc_tensor *expected) {
  Comparison comparison = {.count = 1, .worst_ratio = -1};
  for (int axis = 0; axis < got->rank; axis++) comparison.count *= got->shape[axis];
  for (int64_t i = 0; i < comparison.count; i++) {
    double ratio = error_ratio(arguments, got, expected, i);
    comparison.mismatches += ratio > 1;
    if (ratio <= comparison.worst_ratio) continue;
    comparison.worst = i;
    comparison.worst_ratio = ratio;
  }
  return comparison;
}

static void print_position(const rnncc_tensor *tensor, int64_t index) {
  int64_t position[RNNCC_MAX_RANK];
  for (int axis = tensor->rank; axis-- > 0; index /= tensor->shape[axis]) position[axis] = index % tensor->shape[axis];
  putchar('[');
  for (int axis = 0; axis < tensor->rank; axis++) printf("%s%" PRId64, axis ? "," : "", position[axis]);
  putchar(']');
}

static void print_comparison(const char *name, const Comparison *comparison, const rnncc_tensor *got,
                             const rnncc_tensor *expected) {
  printf("%s: %s, %" PRId64 " of %" PRId64 " elements differ", name, comparison->mismatches ? "MISMATCH" : "ok",
         comparison->mismatches, comparison->count);
  if (comparison->count) {
    double g = any_element(got, comparison->worst), e = any_element(expected, comparison->worst);
    printf("; worst error %.3g at ", fabs(g - e));
    print_position(got, comparison->worst);
    printf(": got %.9g, expected %.9g", g, e);
  }
  putchar('\n');
}

/* Compares the output with the file. */
static int verify_output(const Arguments *arguments, const char *name, const rnncc_tensor *got, const char *path) {
  rnncc_tensor expected = npy_read(path, got->dtype);
  if (expected.dtype != got->dtype)
    fail(EXIT_INPUT, "%s: %s, but output %s is %s", path, dtype_text(expected.dtype), name, dtype_text(got->dtype));
  if (expected.rank != got->rank || memcmp(expected.shape, got->shape, sizeof(int64_t) * (size_t)got->rank) != 0) {
    char e[SHAPE_TEXT], g[SHAPE_TEXT];
    printf("%s: MISMATCH, shape %s, expected %s\n", name, shape_text(g, got->rank, got->shape),
           shape_text(e, expected.rank, expected.shape));
    free(expected.data);
    return 0;
  }
  Comparison comparison = compare(arguments, got, &expected);
  print_comparison(name, &comparison, got, &expected);
  free(expected.data);
  return comparison.mismatches == 0;
}

static void check_verify(const Arguments *arguments) {
  if (arguments->reference && arguments->expects.count)
    fail(EXIT_INPUT, "expected --expect or --reference, found both");
  if (!arguments->reference && !arguments->expects.count)
    fail(EXIT_INPUT, "nothing to compare: --expect NAME=@FILE or --reference=MODULE.so is missing");
  const char *alone = arguments->samples          ? "samples"
                      : arguments->max_error >= 0 ? "max-error"
                      : arguments->min_snr >= 0   ? "min-snr"
                                                  : NULL;
  if (alone && !arguments->reference) fail(EXIT_INPUT, "--%s goes with --reference", alone);
}

int verify_verb(const Arguments *arguments) {
  check_verify(arguments);
  if (arguments->reference) return verify_reference(arguments);
  Session session = load_module(arguments->module, arguments->network);
  const rnncc_info *info = session.api->info;
  check_names(&arguments->expects, "expect", info->outputs, info->tensor_size, info->n_outputs);
  rnncc_tensor *inputs = make_inputs(info, arguments, NULL), *outputs = make_outputs(info);
  session.check_weights = 1;
  session_start(&session, one_thread_count(arguments));
  set_weights(&session, arguments->weights);
  for (int64_t step = 0; step < arguments->steps; step++) session_run(&session, inputs, outputs);

  int same = 1;
  for (int i = 0; i < info->n_outputs; i++) {
    const char *name = rnncc_output_at(info, i)->name, *value = assignment_find(&arguments->expects, name);
    if (value) same &= verify_output(arguments, name, &outputs[i], file_path("expect", name, value));
  }
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);
  return same ? 0 : EXIT_MISMATCH;
}
