/* SPDX-License-Identifier: MIT */
/*
 * Runs specialised attention kernels on extents at and around the edges of their blocks, with heads side by side as in
 * [batch][row][head][column], with rows side by side, or with nothing side by side, and compares them with plain loops
 * in double. Built by test_attention_kernels.py, once
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

/* Where the elements of Q, K and V stand. */
typedef enum Layout {
  BY_ROW,    /* [batch][row][head][column] */
  BY_COLUMN, /* [batch][head][column][row] */
  SPREAD,    /* as BY_ROW, each element beside one that is not used */
  LAYOUTS
} Layout;

typedef struct Problem {
  const AttentionVariant *variant;
  int64_t queries, keys, depth, width;
  Layout layout;
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

/* Strides, in elements, of an operand with so many rows and columns. */
typedef struct Strides {
  int64_t batch, head, row, column;
} Strides;

static Strides strides_of(const Problem *p, int64_t rows, int64_t columns) {
  if (p->layout == BY_COLUMN) return (Strides){HEADS * columns * rows, columns * rows, 1, rows};
  int64_t step = p->layout == SPREAD ? 2 : 1;
  return (Strides){rows * HEADS * columns * step, columns * step, HEADS * columns * step, step};
}

static float element(const float *data, Strides s, int64_t batch, int64_t head, int64_t row, int64_t column) {
  return data[batch * s.batch + head * s.head + row * s.row + column * s.column];
}

/* Some keys are masked; the second query sees none, where each has a mask of its own. */
static void mask_some(Problem *p) {
  for (int64_t key = 0; key < p->keys; key++) {
    if (key % 3 == 1) p->mask[key * mask_column(p)] = -INFINITY;
    if (p->queries > 1 && p->variant->mask > 1) p->mask[mask_row(p) + key * mask_column(p)] = -INFINITY;
  }
}

static float *operand(const Problem *p, int64_t rows, int64_t columns, unsigned seed, float scale) {
  return array(BATCHES * strides_of(p, rows, columns).batch, seed, scale);
}

static Problem new_problem(const AttentionVariant *variant, Layout layout, int64_t queries, int64_t keys, int64_t depth,
                           int64_t width) {
  Problem p = {.variant = variant, .layout = layout, .queries = queries, .keys = keys, .depth = depth, .width = width};
  p.band = (Band){0, 0, queries};
  p.q = operand(&p, queries, depth, 1, 2);
  p.k = operand(&p, keys, depth, 2, 2);
  p.v = operand(&p, keys, width, 3, 1);
  p.mask = array(queries * keys, 4, 3);
  mask_some(&p);
  return p;
}

static void free_problem(Problem *p) { free(p->q), free(p->k), free(p->v), free(p->mask); }

static int64_t result_count(const Problem *p) { return BATCHES * p->queries * HEADS * p->width; }

/* Copied rows: an odd number of lines each. */
static int64_t copied_floats(const Problem *p) {
  int64_t depth = ((p->depth + 15) / 16 | 1) * 16, width = ((p->width + 15) / 16 | 1) * 16;
  return p->variant->query_blocks > 1 ? p->variant->keys * (depth + width) : 0;
}

/* The result between margins, by all ranks of a team, one after the other: they share no element. */
static float *attend(const Problem *p, int size) {
  const AttentionVariant *v = p->variant;
  int64_t count = result_count(p), block = (int64_t)v->lanes * v->vectors;
  int64_t slot = (v->query_blocks * (p->depth + p->width) + v->keys) * block + copied_floats(p);
  float *y = malloc((size_t)(count + 2 * MARGIN) * sizeof *y);
  float *scratch = aligned_alloc(64, (size_t)(SLOTS * slot * (int64_t)sizeof(float) + 63) / 64 * 64);
  for (int64_t i = 0; i < count + 2 * MARGIN; i++) y[i] = 12345;
  for (int64_t i = 0; i < SLOTS * slot; i++) scratch[i] = NAN;
  Strides of_q = strides_of(p, p->queries, p->depth), of_k = strides_of(p, p->keys, p->depth);
  Strides of_v = strides_of(p, p->keys, p->width);
  const int64_t dims[] = {BATCHES, HEADS};
  const int64_t strides[] = {
      of_q.batch, of_q.head, of_k.batch, of_k.head, of_v.batch, of_v.head, 0, 0, p->queries * HEADS * p->width,
      p->width};
  for (int rank = 0; rank < size; rank++) {
    Team team = {.rank = rank, .size = size};
    v->attention(&team, p->q, p->k, p->v, p->mask, y + MARGIN, scratch, 0.7f, p->queries, p->keys, p->depth, p->width,
                 of_q.row, of_q.column, of_k.row, of_k.column, of_v.row, of_v.column, mask_row(p), mask_column(p),
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
  Strides of_q = strides_of(p, p->queries, p->depth), of_k = strides_of(p, p->keys, p->depth);
  for (int64_t key = 0; key < p->keys; key++) {
    double sum = 0, magnitude = 0, mask = mask_at(p, query, key);
    for (int64_t d = 0; d < p->depth; d++) {
      double product = (double)element(p->q, of_q, batch, head, query, d) * element(p->k, of_k, batch, head, key, d);
      sum += product;
      magnitude += fabs(product);
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
  Strides of_v = strides_of(p, p->keys, p->width);
  double sum = 0, blocks = ceil((double)p->keys / p->variant->keys);
  bool right = true;
  for (int64_t key = 0; key < p->keys; key++) sum += exp(found.scores[key] - found.top);
  for (int64_t e = 0; e < p->width && right; e++) {
    double mixed = 0, magnitude = 0;
    for (int64_t key = 0; key < p->keys; key++) {
      double term = exp(found.scores[key] - found.top) / sum * element(p->v, of_v, batch, head, key, e);
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
  one.q = operand(&one, 1, p->depth, 1, 0);
  Strides from = strides_of(p, p->queries, p->depth), to = strides_of(&one, 1, p->depth);
  for (int64_t i = 0; i < BATCHES * HEADS * p->depth; i++) {
    int64_t batch = i / p->depth / HEADS, head = i / p->depth % HEADS, d = i % p->depth;
    one.q[batch * to.batch + head * to.head + d * to.column] = element(p->q, from, batch, head, 0, d);
  }
  int64_t width = HEADS * p->width;
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
    printf("not ok %s: queries %ld keys %ld depth %ld width %ld layout %d band %ld..%ld of %ld: %s\n", p->variant->name,
           (long)p->queries, (long)p->keys, (long)p->depth, (long)p->width, p->layout, (long)p->band.low,
           (long)p->band.high, (long)p->band.period, fault);
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
  const int64_t queries[] = {1, v->lanes + 1, block, v->query_blocks * block + block + 3};
  const int64_t keys[] = {1, 5, block_keys, block_keys + 1, 3 * block_keys - 2}, columns[] = {1, 6, 17};
  int faults = 0;
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
    for (size_t j = 0; j < sizeof keys / sizeof *keys; j++)
      for (size_t l = 0; l < sizeof columns / sizeof *columns; l++) {
        Layout layout = (Layout)((i + 2 * j + l) % LAYOUTS);
        Problem p = new_problem(v, layout, queries[i], keys[j], columns[(i + j + l) % 3], columns[l]);
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
