/* SPDX-License-Identifier: MIT */
#include "load/names.h"

#include <string.h>

#include "support/closest.h"
#include "json/json.h"

enum { FIRST_CAPACITY = 256, MAX_HINTED = 10000 }; /* a hint compares every name: too slow in huge models */

/* FNV-1a. */
static uint64_t hash_of(const char *text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return hash;
}

NameTable name_table_new(Arena *arena, const NameTable *outer) {
  return (NameTable){
      .arena = arena, .outer = outer, .slots = ARENA_ARRAY(arena, Name *, FIRST_CAPACITY), .capacity = FIRST_CAPACITY};
}

/* The slot of the name, or the free slot for it. */
static Name **slot_of(const NameTable *table, const char *text, uint64_t hash) {
  size_t i = hash & (table->capacity - 1);
  while (table->slots[i] && (table->slots[i]->hash != hash || strcmp(table->slots[i]->text, text) != 0))
    i = (i + 1) & (table->capacity - 1);
  return &table->slots[i];
}

static void grow(NameTable *table) {
  NameTable larger = *table;
  larger.capacity *= 2;
  larger.slots = ARENA_ARRAY(table->arena, Name *, larger.capacity);
  for (size_t i = 0; i < table->capacity; i++)
    if (table->slots[i]) *slot_of(&larger, table->slots[i]->text, table->slots[i]->hash) = table->slots[i];
  *table = larger;
}

Name *name_find(const NameTable *table, const char *text) { return *slot_of(table, text, hash_of(text)); }

Name *name_declare(NameTable *table, const char *text, Location where) {
  if (*text == 0) {
    error_at(where, EXIT_INVALID, "the name is empty");
    table->has_nameless = true;
    return NULL;
  }
  if (table->count * 2 >= table->capacity) grow(table);
  uint64_t hash = hash_of(text);
  Name **slot = slot_of(table, text, hash);
  if (*slot) {
    const Location first = (*slot)->where;
    error_at(where, EXIT_INVALID, "the tensor \"%s\" is already declared at %s%s%s", short_name(table->arena, text),
             first.file == where.file ? "" : first.file, first.file == where.file ? "" : ": ", first.path);
    (*slot)->value = NULL;
    (*slot)->constant = NULL;
    return NULL;
  }
  *slot = ARENA_NEW(table->arena, Name);
  **slot = (Name){.text = text, .hash = hash, .where = where};
  table->count++;
  return *slot;
}

static const char *hint(const NameTable *table, const char *text) {
  Closest closest = closest_to(text);
  for (const NameTable *around = table; around; around = around->outer)
    for (size_t i = 0; i < around->capacity && around->count <= MAX_HINTED; i++)
      if (around->slots[i]) closest_try(&closest, around->slots[i]->text);
  return closest_hint(table->arena, &closest);
}

Name *name_resolve(const NameTable *table, const char *text, Location where) {
  bool told = *text == 0;
  if (told) error_at(where, EXIT_INVALID, "the name is empty");
  for (const NameTable *around = table; around; around = around->outer) {
    Name *found = name_find(around, text);
    if (found) return found;
    told |= around->has_nameless;
  }
  if (!told)
    error_at(where, EXIT_INVALID, "nothing produces the tensor \"%s\"%s", short_name(table->arena, text),
             hint(table, text));
  return NULL;
}
