/* SPDX-License-Identifier: MIT */
/*
 * A model file as a tree of parts, whatever its format: what a format has of structure is read here once, and mutate.c
 * changes the tree without knowing of formats. A changed tree is written back as a file that is well formed, so that
 * a mutant reaches what stands behind the readers' first checks.
 */
#ifndef RNNCC_FUZZ_PARTS_H
#define RNNCC_FUZZ_PARTS_H

#include "support/arena.h"
#include "support/files.h"
#include "support/text.h"

typedef enum PartKind {
  PART_NUMBER,  /* a whole number */
  PART_FLOAT,   /* any other */
  PART_TEXT,    /* a name or a word */
  PART_BYTES,   /* elements of a tensor */
  PART_LITERAL, /* JSON: null, true, false */
  PART_LIST,    /* JSON: an array */
  PART_GROUP,   /* JSON: an object; ONNX: a message */
} PartKind;

typedef struct Part Part;
struct Part {
  PartKind kind;
  uint64_t role; /* a part may stand where another of its role does */
  int64_t number;
  double real;
  FileBytes bytes; /* of a text, a literal or bytes */
  Part **parts;    /* of a list or group */
  int n_parts, capacity;
  const char *key;   /* JSON: of a member; NULL: an element, or the root */
  const void *field; /* ONNX: its field's descriptor */
};

Part *part_new(Arena *arena, PartKind kind, uint64_t role);
Part *part_copy(Arena *arena, const Part *part);
/* Before the place-th of `parts`. */
void part_insert(Arena *arena, Part *parent, int place, Part *part);
void part_remove(Part *parent, int place);

/* NULL: the bytes are no such file. */
Part *parts_of_json(Arena *arena, FileBytes file);
Part *parts_of_onnx(Arena *arena, FileBytes file);
void json_of_parts(Text *text, const Part *root);
void onnx_of_parts(Text *text, const Part *root);

/* ONNX: another field of its message that is written the same way; itself if there is none. */
const void *onnx_other_field(const Part *part, const Part *parent, uint64_t chance);
/* ONNX: elements for the shapes that tensors have now. */
void onnx_fill_tensors(Arena *arena, Part *root);

/* Changes `root`; `other` may be NULL: a model of the same format that parts are taken from. */
void mutate(Arena *arena, Part *root, const Part *other, uint64_t seed);

#endif
