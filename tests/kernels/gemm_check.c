/* SPDX-License-Identifier: MIT */
/*
 * Runs specialised matrix products on extents at and around the edges of panels, blocks and depth blocks, zero
 * included, and compares them with plain loops in double. Built by test_gemm_kernels.py, once for each instruction set.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_check.h"
#include "kernels/gemm/panels.h"

enum { MARGIN = 64 }; /* floats around the result that must stay unchanged */

typedef struct Problem {
  const GemmVariant *variant;
  int64_t m, n, k, batches;
  float *a, *b, *addend; /* [batches][m][k], [batches][k][n], [n] */
} Problem;

static float *array(int64_t count, unsigned seed) {
  float *data = malloc(((size_t)count + 1) * sizeof *data);
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    data[i] = (float)(seed >> 8) * 0x1p-23f - 1;
  }
  return data;
}

static Problem new_problem(const GemmVariant *variant, int64_t m, int64_t n, int64_t k, int64_t batches) {
  return (Problem){variant, m, n, k, batches, array(batches * m * k, 1), array(batches * k * n, 2), array(n, 3)};
}

static void free_problem(Problem *p) { free(p->a), free(p->b), free(p->addend); }

/* B packed as the compiler packs it; the kernel that packs at run time must give the same bytes. NULL if it does not.
 */
static float *packed(const Problem *p) {
  const GemmVariant *v = p->variant;
  Panels panels = {.lanes = v->lanes,
                   .vectors = v->vectors,
                   .gates = 1,
                   .unit_vectors = v->vectors,
                   .directions = 1,
                   .units = p->n,
                   .depth = p->k,
                   .column_stride = 1,
                   .depth_stride = p->n};
  int64_t floats = panels_floats(&panels);
  size_t bytes = (size_t)(p->batches * floats) * sizeof(float);
  float *ahead = calloc(1, bytes + 64), *at_run_time = array(p->batches * floats, 4);
  for (int64_t i = 0; i < p->batches; i++) panels_pack(&panels, p->b + i * p->n * p->k, NULL, ahead + i * floats);
  for (int rank = 0; rank < 2; rank++) {
    Team team = {.rank = rank, .size = 2};
    v->pack(&team, p->b, NULL, at_run_time, p->batches, p->n * p->k, 1, 0, p->n, p->k, 1, p->n);
  }
  bool same = !memcmp(ahead, at_run_time, bytes);
  free(at_run_time);
  if (same) return ahead;
  free(ahead);
  return NULL;
}

/* The result between margins, by ranks first..end - 1 of a team of `size`, one after the other: they share no element.
 */
static float *multiply_by(const Problem *p, const float *b, int size, int first, int end) {
  int64_t count = p->batches * p->m * p->n, width = (int64_t)p->variant->lanes * p->variant->vectors;
  float *c = malloc((size_t)(count + 2 * MARGIN) * sizeof *c);
  for (int64_t i = 0; i < count + 2 * MARGIN; i++) c[i] = 12345;
  int64_t a_batch = p->m * p->k, b_batch = (p->n + width - 1) / width * width * p->k;
  for (int rank = first; rank < end; rank++) {
    Team team = {.rank = rank, .size = size};
    p->variant->gemm(&team, p->a, b, p->addend, c + MARGIN, 0.5f, 2, p->m, p->n, p->k, p->k, 1, 0, p->n, 1, &p->batches,
                     &a_batch, &b_batch, NULL);
  }
  return c;
}

static float *multiply(const Problem *p, const float *b, int size) { return multiply_by(p, b, size, 0, size); }

/* Sums of k terms in order have errors of at most k roundings of the sum of magnitudes; scaling and adding, of three.
 */
static bool element_is_right(const Problem *p, int64_t batch, int64_t row, int64_t column, float got) {
  const float *a = p->a + (batch * p->m + row) * p->k, *b = p->b + batch * p->k * p->n + column;
  double sum = 0, magnitude = 0;
  for (int64_t k = 0; k < p->k; k++) {
    double term = (double)a[k] * b[k * p->n];
    sum += term;
    magnitude += fabs(term);
  }
  double added = p->variant->addend ? p->addend[column] : 0, scale = p->variant->scaled ? 0.5 : 1;
  double want = scale * sum + (p->variant->scaled ? 2 : 1) * added;
  return fabs(got - want) <= (double)(p->k + 3) * 0x1p-24 * (magnitude + 2 * fabs(added));
}

static bool result_is_right(const Problem *p, const float *c) {
  int64_t count = p->batches * p->m * p->n;
  for (int64_t i = 0; i < MARGIN; i++)
    if (c[i] != 12345 || c[MARGIN + count + i] != 12345) return false;
  for (int64_t i = 0; i < count; i++)
    if (!element_is_right(p, i / p->n / p->m, i / p->n % p->m, i % p->n, c[MARGIN + i])) return false;
  return true;
}

static const char *fault_of(const Problem *p) {
  float *b = packed(p);
  if (!b) return "packing at run time differs from packing ahead";
  size_t bytes = (size_t)(p->batches * p->m * p->n + 2 * MARGIN) * sizeof(float);
  float *alone = multiply(p, b, 1);
  const char *fault = result_is_right(p, alone) ? NULL : "wrong result";
  for (int size = 2; size <= 3 && !fault; size++) {
    float *team = multiply(p, b, size);
    if (memcmp(team, alone, bytes)) fault = "depends on the size of the team";
    free(team);
  }
  free(alone);
  free(b);
  return fault;
}

/* A crew computes all of the product, without the ranks of the other one. */
static const char *crew_fault(const GemmVariant *variant, int64_t n, int64_t k) {
  enum { SIZE = 5 };
  Problem p = new_problem(variant, 11, n, k, 1);
  int first = SIZE * variant->crew / variant->crews, end = SIZE * (variant->crew + 1) / variant->crews;
  float *b = packed(&p), *all = multiply(&p, b, 1), *crew = multiply_by(&p, b, SIZE, first, end);
  bool same = !memcmp(crew, all, (size_t)(p.m * n + 2 * MARGIN) * sizeof *all);
  free(b), free(all), free(crew);
  free_problem(&p);
  return same ? NULL : "a crew leaves work to the other one";
}

/* A row's bits do not depend on the number of rows: so chunks of a sequence equal the whole sequence. */
static const char *rows_fault(const GemmVariant *variant, int64_t n, int64_t k) {
  Problem p = new_problem(variant, 11, n, k, 1);
  float *b = packed(&p), *all = multiply(&p, b, 1);
  const char *fault = NULL;
  for (int64_t row = 0; row < p.m; row++) {
    Problem one = p;
    one.m = 1;
    one.a = p.a + row * k;
    float *c = multiply(&one, b, 1);
    if (memcmp(c + MARGIN, all + MARGIN + row * n, (size_t)n * sizeof *c)) fault = "a row depends on the others";
    free(c);
  }
  free(b), free(all);
  free_problem(&p);
  return fault;
}

/* The product of one row has the same bits for any width of panels. The width depends on the planned number of rows. */
static const char *width_fault(const GemmVariant *variant, const GemmVariant *other, int64_t n, int64_t k) {
  if (other->scaled != variant->scaled || other->addend != variant->addend) return NULL;
  Problem p = new_problem(variant, 1, n, k, 1), q = p;
  q.variant = other;
  float *p_b = packed(&p), *q_b = packed(&q), *p_c = multiply(&p, p_b, 1), *q_c = multiply(&q, q_b, 1);
  bool same = !memcmp(p_c, q_c, (size_t)(n + 2 * MARGIN) * sizeof *p_c);
  free(p_b), free(q_b), free(p_c), free(q_c);
  free_problem(&p);
  return same ? NULL : "a row depends on the width of panels";
}

static int report(const GemmVariant *v, const Problem *p, const char *fault) {
  if (fault)
    printf("not ok %s: m %ld n %ld k %ld batches %ld: %s\n", v->name, (long)p->m, (long)p->n, (long)p->k,
           (long)p->batches, fault);
  return fault != NULL;
}

static int check_variant(const GemmVariant *v) {
  const int64_t ms[] = {0, 1, 2, 3, 5, 8, 9, 23}, ks[] = {0, 1, 15, 16, 17, 40};
  int64_t width = (int64_t)v->lanes * v->vectors;
  const int64_t ns[] = {0, 1, v->lanes - 1, v->lanes, v->lanes + 1, width - 1, width, width + 1, 5 * width + 3};
  int faults = 0;
  for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
    for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
      for (size_t l = 0; l < sizeof ks / sizeof *ks; l++) {
        Problem p = new_problem(v, ms[i], ns[j], ks[l], (int64_t)(i + j + l) % 3);
        faults += report(v, &p, fault_of(&p));
        free_problem(&p);
      }
  Problem rows = {.m = 11, .n = 2 * width + 1, .k = 40, .batches = 1};
  faults += report(v, &rows, rows_fault(v, rows.n, rows.k));
  faults += report(v, &rows, crew_fault(v, rows.n, rows.k));
  Problem row = {.m = 1, .n = 3 * width + 1, .k = 41, .batches = 1};
  for (const GemmVariant *const *other = gemm_variants; *other; other++)
    faults += report(v, &row, width_fault(v, *other, row.n, row.k));
  return faults;
}

int main(void) {
  int faults = 0;
  for (const GemmVariant *const *v = gemm_variants; *v; v++) faults += check_variant(*v);
  return faults ? 1 : 0;
}
