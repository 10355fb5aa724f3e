/* SPDX-License-Identifier: MIT */
/* The tensor names of a model: a hash table from name to declaration and value. */
#ifndef RNNCC_NAMES_H
#define RNNCC_NAMES_H

#include "ir/graph.h"
#include "load/constant.h"

typedef struct Name {
  const char *text;
  uint64_t hash;
  Location where;           /* of its declaration */
  Value *value;             /* NULL: a constant that no node has read yet, or one with an error */
  const Constant *constant; /* NULL: no constant */
} Name;

typedef struct NameTable {
  Arena *arena;
  Name **slots; /* open addressing, at most half full */
  size_t capacity, count;
} NameTable;

NameTable name_table_new(Arena *arena);
Name *name_find(const NameTable *table, const char *text); /* NULL if there is none */
/* NULL, after an error, if the name is taken. */
Name *name_declare(NameTable *table, const char *text, Location where);
/* `; did you mean ...?` or "". */
const char *name_hint(const NameTable *table, const char *text);

#endif
