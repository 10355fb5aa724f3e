/* SPDX-License-Identifier: MIT */
/*
 * Programs of several targets or networks read one file of weights. Programs whose kernels read a constant in the same
 * layout have equal bytes of it, which are there once: found by their hash, then compared.
 */
#include <string.h>

#include "program/program.h"
#include "sha256.h"
#include "support/list.h"

/* The constants that have a place, by their content: open addressing. */
typedef struct Placed {
  const Value **slots;
  uint64_t mask; /* the number of slots, a power of 2, less 1 */
  int64_t bytes; /* of the file, so far */
} Placed;

static uint64_t content_hash(const Value *value) {
  const uint8_t *data = value->data;
  int64_t bytes = value_max_bytes(value);
  uint64_t hash = (uint64_t)bytes, word;
  for (; bytes > 0; data += sizeof word, bytes -= (int64_t)sizeof word) {
    word = 0;
    memcpy(&word, data, bytes < (int64_t)sizeof word ? (size_t)bytes : sizeof word);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u; /* 2^64 by the golden ratio */
    hash ^= hash >> 32;
  }
  return hash;
}

static bool same_content(const Value *a, const Value *b) {
  int64_t bytes = value_max_bytes(a);
  return value_max_bytes(b) == bytes && !memcmp(a->data, b->data, (size_t)bytes);
}

/* Of a value with this content, or the empty one for it. */
static const Value **slot_of(const Placed *placed, const Value *value) {
  uint64_t at = content_hash(value) & placed->mask;
  while (placed->slots[at] && !same_content(placed->slots[at], value)) at = (at + 1) & placed->mask;
  return &placed->slots[at];
}

static void place_again(Placed *placed, Value *value) {
  const Value **slot = slot_of(placed, value);
  if (*slot) {
    value->offset = (*slot)->offset;
    return;
  }
  *slot = value;
  value->offset = placed->bytes;
  placed->bytes = weight_end(value);
}

/* The first program's constants have their places; equal ones among them keep theirs. */
static Placed places_of_first(Program *const *programs, int count) {
  const Program *first = programs[0];
  uint64_t values = 0, slots = 2;
  for (int p = 0; p < count; p++) values += (uint64_t)programs[p]->n_weights;
  while (slots < 2 * values) slots *= 2;
  Placed placed = {ARENA_ARRAY(first->arena, const Value *, slots), slots - 1, first->weights_bytes};
  for (int i = 0; i < first->n_weights; i++) *slot_of(&placed, first->weights[i]) = first->weights[i];
  return placed;
}

static int64_t place_others(Program *const *programs, int count) {
  if (count == 1) return programs[0]->weights_bytes;
  Placed placed = places_of_first(programs, count);
  for (int p = 1; p < count; p++)
    for (int i = 0; i < programs[p]->n_weights; i++) place_again(&placed, programs[p]->weights[i]);
  return placed.bytes;
}

const char *weights_sha256(const Program *program) {
  WeightsFile *file = program->weights_file;
  if (file->sha256) return file->sha256;
  Sha256 hash = sha256_new();
  uint8_t digest[SHA256_BYTES];
  char *hex = ARENA_ARRAY(program->arena, char, SHA256_HEX_BYTES);
  for (int i = 0; i < file->n_parts; i++) sha256_add(&hash, file->parts[i].data, file->parts[i].size);
  sha256_end(&hash, digest);
  sha256_hex(digest, hex);
  return file->sha256 = hex;
}

/* needs: a constant's place is where the file ends, or before. */
static void add_part(Arena *arena, WeightsFile *file, const Value *value) {
  static const uint8_t zeros[WEIGHT_ALIGNMENT];
  if (value->offset < file->bytes) return;
  int64_t bytes = value_max_bytes(value), padding = weight_end(value) - value->offset - bytes;
  *LIST_ADD(arena, file->parts, file->n_parts, file->part_capacity) = (FileBytes){value->data, (size_t)bytes};
  *LIST_ADD(arena, file->parts, file->n_parts, file->part_capacity) = (FileBytes){zeros, (size_t)padding};
  file->bytes = weight_end(value);
}

void join_weights(Program *const *programs, int count) {
  Arena *arena = programs[0]->arena;
  WeightsFile *file = ARENA_NEW(arena, WeightsFile);
  int64_t bytes = place_others(programs, count);
  for (int p = 0; p < count; p++) {
    for (int i = 0; i < programs[p]->n_weights; i++) add_part(arena, file, programs[p]->weights[i]);
    programs[p]->weights_file = file;
  }
  if (file->bytes != bytes)
    bug("%lld bytes of weights where they end at %lld", (long long)file->bytes, (long long)bytes);
}
