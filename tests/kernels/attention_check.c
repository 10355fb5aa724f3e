/* SPDX-License-Identifier: MIT */
/*
 * Runs specialised attention kernels on extents at and around the edges of their blocks, with heads side by side as in
 * [batch][row][head][column], and compares them with plain loops in double. Built by test_attention_kernels.py, once
 * for each instruction set.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_check.h"

enum { BATCHES = 2, HEADS = 3, MARGIN = 64, SLOTS = 2 };

/* Query i sees keys i % period + low .. i % period + high. */
typedef struct Band {
  int64_t low, high, period;
} Band;

typedef struct Problem {
  const AttentionVariant *variant;
  int64_t queries, keys, depth, width;
  Band band;               /* if the variant has one */
  float *q, *k, *v, *mask; /* mask: [queries][keys], [keys] or turned, as the variant has it */
} Problem;

static float *array(int64_t count, unsigned seed, float scale) {
  float *data = malloc(((size_t)count + 1) * sizeof *data);
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    data[i] = ((float)(seed >> 8) * 0x1p-23f - 1) * scale;
  }
  return data;
}

static int64_t mask_row(const Problem *p) { return p->variant->mask == 1 ? 0 : p->variant->mask == 2 ? p->keys : 1; }
static int64_t mask_column(const Problem *p) { return p->variant->mask == 3 ? p->queries : 1; }
static float mask_at(const Problem *p, int64_t query, int64_t key) {
  int64_t ahead = key - query % p->band.period;
  if (p->variant->band && (ahead < p->band.low || ahead > p->band.high)) return -INFINITY;
  return p->variant->mask ? p->mask[query * mask_row(p) + key * mask_column(p)] : 0;
}

/* Some keys are masked; the second query sees none, where each has a mask of its own. */
static void mask_some(Problem *p) {
  for (int64_t key = 0; key < p->keys; key++) {
    if (key % 3 == 1) p->mask[key * mask_column(p)] = -INFINITY;
    if (p->queries > 1 && p->variant->mask > 1) p->mask[mask_row(p) + key * mask_column(p)] = -INFINITY;
  }
}

static Problem new_problem(const AttentionVariant *variant, int64_t queries, int64_t keys, int64_t depth,
                           int64_t width) {
  Problem p = {.variant = variant, .queries = queries, .keys = keys, .depth = depth, .width = width};
  p.band = (Band){0, 0, queries};
  p.q = array(BATCHES * queries * HEADS * depth, 1, 2);
  p.k = array(BATCHES * keys * HEADS * depth, 2, 2);
  p.v = array(BATCHES * keys * HEADS * width, 3, 1);
  p.mask = array(queries * keys, 4, 3);
  mask_some(&p);
  return p;
}

static void free_problem(Problem *p) { free(p->q), free(p->k), free(p->v), free(p->mask); }

static int64_t result_count(const Problem *p) { return BATCHES * p->queries * HEADS * p->width; }

/* The result between margins, by all ranks of a team, one after the other: they share no element. */
static float *attend(const Problem *p, int size) {
  const AttentionVariant *v = p->variant;
  int64_t count = result_count(p), block = (int64_t)v->lanes * v->vectors;
  int64_t slot = (p->depth + p->width + v->keys) * block;
  float *y = malloc((size_t)(count + 2 * MARGIN) * sizeof *y);
  float *scratch = aligned_alloc(64, (size_t)(SLOTS * slot * (int64_t)sizeof(float) + 63) / 64 * 64);
  for (int64_t i = 0; i < count + 2 * MARGIN; i++) y[i] = 12345;
  for (int64_t i = 0; i < SLOTS * slot; i++) scratch[i] = NAN;
  const int64_t of_keys = p->keys * HEADS, of_queries = p->queries * HEADS, dims[] = {BATCHES, HEADS};
  const int64_t strides[] = {
      of_queries * p->depth, p->depth, of_keys * p->depth, p->depth, of_keys * p->width, p->width, 0, 0,
      of_queries * p->width, p->width};
  for (int rank = 0; rank < size; rank++) {
    Team team = {.rank = rank, .size = size};
    v->attention(&team, p->q, p->k, p->v, p->mask, y + MARGIN, scratch, 0.7f, p->queries, p->keys, p->depth, p->width,
                 HEADS * p->depth, 1, HEADS * p->depth, 1, HEADS * p->width, 1, mask_row(p), mask_column(p),
                 HEADS * p->width, 2, dims, strides, p->band.low, p->band.high, p->band.period, SLOTS, slot);
  }
  free(scratch);
  return y;
}

/* One query of one head: its scores, their maximum, and how far rounding may move them. */
typedef struct Query {
  double *scores, top, error;
} Query;

static Query scored(const Problem *p, int64_t batch, int64_t head, int64_t query) {
  Query found = {malloc((size_t)p->keys * sizeof(double)), -INFINITY, 0};
  const float *q = p->q + ((batch * p->queries + query) * HEADS + head) * p->depth;
  for (int64_t key = 0; key < p->keys; key++) {
    const float *k = p->k + ((batch * p->keys + key) * HEADS + head) * p->depth;
    double sum = 0, magnitude = 0, mask = mask_at(p, query, key);
    for (int64_t d = 0; d < p->depth; d++) {
      sum += (double)q[d] * k[d];
      magnitude += fabs((double)q[d] * k[d]);
    }
    found.scores[key] = (double)0.7f * sum + mask;
    found.top = fmax(found.top, found.scores[key]);
    double rounding = (double)(p->depth + 2) * magnitude + (isinf(mask) ? 0 : 2 * fabs(mask) + 2 * magnitude);
    found.error = fmax(found.error, 0x1p-24 * rounding);
  }
  return found;
}

/* Scores err by `error`, and so do their exponents, by as much again for their difference from the maximum; exp errs by
 * 2 ULP, each block of keys multiplies by one more; sums of `keys` terms by their number; the quotient by 3. */
static bool query_is_right(const Problem *p, const float *got, int64_t batch, int64_t head, int64_t query) {
  Query found = scored(p, batch, head, query);
  double sum = 0, blocks = ceil((double)p->keys / p->variant->keys);
  bool right = true;
  for (int64_t key = 0; key < p->keys; key++) sum += exp(found.scores[key] - found.top);
  for (int64_t e = 0; e < p->width && right; e++) {
    double mixed = 0, magnitude = 0;
    for (int64_t key = 0; key < p->keys; key++) {
      double term =
          exp(found.scores[key] - found.top) / sum * p->v[((batch * p->keys + key) * HEADS + head) * p->width + e];
      mixed += term;
      magnitude += fabs(term);
    }
    double bound = (4 * found.error + ((double)(2 * p->keys) + 8 * blocks + 8) * 0x1p-24) * (magnitude + fabs(mixed));
    if (isinf(found.top))
      right = p->variant->blind_zero ? got[e] == 0 : isnan(got[e]);
    else
      right = fabs(got[e] - mixed) <= bound;
  }
  free(found.scores);
  return right;
}

static bool result_is_right(const Problem *p, const float *y) {
  int64_t count = result_count(p);
  for (int64_t i = 0; i < MARGIN; i++)
    if (y[i] != 12345 || y[MARGIN + count + i] != 12345) return false;
  for (int64_t i = 0; i < BATCHES * p->queries * HEADS; i++)
    if (!query_is_right(p, y + MARGIN + i * p->width, i / HEADS / p->queries, i % HEADS, i / HEADS % p->queries))
      return false;
  return true;
}

static const char *fault_of(const Problem *p) {
  size_t bytes = (size_t)(result_count(p) + 2 * MARGIN) * sizeof(float);
  float *alone = attend(p, 1);
  const char *fault = result_is_right(p, alone) ? NULL : "wrong result";
  for (int size = 2; size <= 3 && !fault; size++) {
    float *team = attend(p, size);
    if (memcmp(team, alone, bytes)) fault = "depends on the size of the team";
    free(team);
  }
  free(alone);
  return fault;
}

/* A query's bits do not depend on how many there are. */
static const char *rows_fault(const Problem *p) {
  float *all = attend(p, 1);
  Problem one = *p;
  one.queries = 1;
  const char *fault = NULL;
  if (p->variant->mask == 3) one.mask = array(p->keys, 4, 0);
  for (int64_t key = 0; p->variant->mask == 3 && key < p->keys; key++) one.mask[key] = p->mask[key * p->queries];
  one.q = array(BATCHES * HEADS * p->depth, 1, 0);
  int64_t depth = HEADS * p->depth, width = HEADS * p->width;
  for (int64_t b = 0; b < BATCHES; b++)
    memcpy(one.q + b * depth, p->q + b * p->queries * depth, (size_t)depth * sizeof(float));
  float *alone = attend(&one, 1);
  for (int64_t b = 0; b < BATCHES; b++)
    if (memcmp(alone + MARGIN + b * width, all + MARGIN + b * p->queries * width, (size_t)width * sizeof(float)))
      fault = "a query depends on the others";
  if (p->variant->mask == 3) free(one.mask);
  free(all), free(alone), free(one.q);
  return fault;
}

static int report(const Problem *p, const char *fault) {
  if (fault)
    printf("not ok %s: queries %ld keys %ld depth %ld width %ld band %ld..%ld of %ld: %s\n", p->variant->name,
           (long)p->queries, (long)p->keys, (long)p->depth, (long)p->width, (long)p->band.low, (long)p->band.high,
           (long)p->band.period, fault);
  return fault != NULL;
}

/* Causal; the same after a past, of two groups of queries; windows, one of three groups; and of keys that only some
 * queries, or none, have. */
static int check_bands(Problem *p) {
  static const struct {
    int64_t low, high, groups;
  } bands[] = {{-9999, 0, 1}, {-9999, 3, 2}, {-3, 2, 1}, {-9, 20, 3}, {9, 12, 1}, {-12, -9, 1}, {9999, 9999, 1}};
  int faults = 0;
  for (size_t i = 0; i < sizeof bands / sizeof *bands; i++) {
    p->band = (Band){bands[i].low, bands[i].high, (p->queries + bands[i].groups - 1) / bands[i].groups};
    faults += report(p, fault_of(p));
    faults += report(p, rows_fault(p));
  }
  return faults;
}

static int check_variant(const AttentionVariant *v) {
  int64_t block = (int64_t)v->lanes * v->vectors, block_keys = v->keys;
  const int64_t queries[] = {1, v->lanes + 1, block, 2 * block + 3};
  const int64_t keys[] = {1, 5, block_keys, block_keys + 1, 3 * block_keys - 2}, columns[] = {1, 6, 17};
  int faults = 0;
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
    for (size_t j = 0; j < sizeof keys / sizeof *keys; j++)
      for (size_t l = 0; l < sizeof columns / sizeof *columns; l++) {
        Problem p = new_problem(v, queries[i], keys[j], columns[(i + j + l) % 3], columns[l]);
        faults += v->band ? check_bands(&p) : report(&p, fault_of(&p)) + report(&p, rows_fault(&p));
        free_problem(&p);
      }
  return faults;
}

int main(void) {
  int faults = 0;
  for (const AttentionVariant *const *v = attention_variants; *v; v++) faults += check_variant(*v);
  return faults ? 1 : 0;
}
