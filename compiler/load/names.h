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
  Value *value;             /* NULL: a constant that no node has read yet, or a tensor with an error */
  const Constant *constant; /* NULL: no constant. Both are NULL: its error is told */
} Name;

typedef struct NameTable {
  Arena *arena;
  const struct NameTable *outer; /* whose names can be read here too; NULL: none's */
  bool has_nameless;             /* a tensor's declaration has no name that can be read, which is told */
  Name **slots;                  /* open addressing, at most half full */
  size_t capacity, count;
} NameTable;

NameTable name_table_new(Arena *arena, const NameTable *outer);
Name *name_find(const NameTable *table, const char *text); /* of this table; NULL if there is none */
/* NULL, after an error, if the name is empty or taken. Of a taken name nobody knows which tensor is meant: it stands
 * for none from then on. */
Name *name_declare(NameTable *table, const char *text, Location where);
/* The declaration that is meant at `where`, of this table or one around it. NULL if there is none, which is an error:
 * it is told, unless a nameless tensor may be meant. */
Name *name_resolve(const NameTable *table, const char *text, Location where);

#endif
