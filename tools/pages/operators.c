/* SPDX-License-Identifier: MIT */
/* write_operators: to stdout the tables of tools/docs/operators.md, from the operator table and the ONNX reader's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/op.h"
#include "load/onnx/adapt.h"

static const OpKind contrib[] = {
#define CONTRIB(name, ...) OP_##name,
#define CONTRIB_CHOICE(name, ...) OP_##name,
#include "ir/ops.def"
    N_OPS};

static const OpKind own[] = {
#define OWN(name, ...) OP_##name,
#define OWN_FORMULA(name, ...) OP_##name,
#define OWN_CHOICE(name, ...) OP_##name,
#include "ir/ops.def"
    N_OPS};

/* Nodes of these have kernels or become others. */
static const OpKind choices[] = {
#define CHOICE(name, ...) OP_##name,
#define CONTRIB_CHOICE(name, ...) OP_##name,
#define OWN_CHOICE(name, ...) OP_##name,
#include "ir/ops.def"
    N_OPS};

static bool is_among(const OpKind *kinds, const OpInfo *op) {
  while (*kinds != N_OPS && *kinds != op->kind) kinds++;
  return *kinds != N_OPS;
}

/* ---- types ---- */

/* Sets that have a word; the first that fits counts. */
typedef struct Word {
  TypeSet set;
  const char *text;
} Word;
enum { N_WORDS = 3 };

static void name_sets(Word words[N_WORDS]) {
  words[0].text = "any";
  words[1].text = "wide";
  words[2].text = "integers";
  for (const DType *type = all_dtypes; *type; type++) {
    TypeSet bit = (TypeSet)1 << *type;
    words[0].set |= bit;
    if (!dtype_is_moved(*type)) words[1].set |= bit;
    if (dtype_is_integer(*type) && !dtype_is_moved(*type)) words[2].set |= bit;
  }
}

static void write_set(TypeSet set) {
  Word words[N_WORDS] = {{0}};
  name_sets(words);
  const char *before = "";
  for (int i = 0; i < N_WORDS; i++) {
    if ((set & words[i].set) != words[i].set) continue;
    printf("%s%s", before, words[i].text);
    set &= ~words[i].set;
    before = " ";
  }
  for (const DType *type = all_dtypes; *type; type++) {
    if (!(set & (TypeSet)1 << *type)) continue;
    printf("%s%s", before, dtype_name(*type));
    before = " ";
  }
}

static TypeSet slot_set(const OpInfo *op, TypeSlot slot) {
  TypeSlot plain = slot & (TypeSlot)~SLOT_OPTIONAL;
  if (plain & SLOT_BODY) return 0;
  return plain & SLOT_FIXED ? (TypeSet)1 << (plain - SLOT_FIXED) : op->types.variables[plain];
}

/* Each set of types once, in the order of the inputs. */
static void write_types(const OpInfo *op) {
  TypeSet told[MAX_SLOTS + 1];
  int n_told = 0;
  for (const TypeSlot *slot = op->types.inputs; *slot; slot++) {
    TypeSet set = slot_set(op, *slot);
    bool is_told = !set;
    for (int i = 0; i < n_told; i++) is_told |= told[i] == set;
    if (is_told) continue;
    if (n_told) printf("; ");
    write_set(set);
    told[n_told++] = set;
  }
}

/* ---- the rows ---- */

static void write_count(int least, int most) {
  if (most < 0)
    printf("%d and more", least);
  else if (most == least)
    printf("%d", least);
  else
    printf("%d to %d", least, most);
}

static void write_attributes(const OpInfo *op) {
  const char *before = "";
  for (const AttributeSpec *spec = op->attributes; spec->id != ATTR_NONE; spec++) {
    printf("%s%s%s%s", before, spec->required ? "**" : "", attribute_name(spec->id), spec->required ? "**" : "");
    before = ", ";
  }
}

static const char *how(const OpInfo *op) {
  if (is_among(choices, op)) return "kernel or others";
  if (op_is_expanded(op)) return "others";
  return op->family ? "kernel" : "compiler";
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const OpInfo *const *)a)->name, (*(const OpInfo *const *)b)->name);
}

/* Of ONNX's, ONNX Runtime's or rnncc's own. */
static const OpKind *owner_of(const OpInfo *op) {
  return is_among(contrib, op) ? contrib : is_among(own, op) ? own : NULL;
}

static void write_ops(const OpKind *owner) {
  static const OpInfo *ops[N_OPS];
  size_t count = 0;
  for (int i = 0; op_at(i); i++)
    if (owner_of(op_at(i)) == owner) ops[count++] = op_at(i);
  qsort(ops, count, sizeof(OpInfo *), by_name);
  printf("| operator | inputs | element types | attributes | runs as |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < count; i++) {
    printf("| `%s` | ", ops[i]->name);
    write_count(ops[i]->min_inputs, ops[i]->max_inputs);
    printf(" | ");
    write_types(ops[i]);
    printf(" | ");
    write_attributes(ops[i]);
    printf(" | %s |\n", how(ops[i]));
  }
}

/* As what: an operator of the tables above, or, where the reader writes its node as several, "others". */
static void write_read_as(void) {
  const char *domain, *name, *ours;
  printf("| operator | of | is read as |\n|---|---|---|\n");
  for (int i = 0; contrib_row(i, &domain, &name, &ours); i++) {
    const OpInfo *op = op_find(ours);
    if (op && owner_of(op) && !strcmp(name, ours)) continue; /* told above */
    printf("| `%s` | %s | %s%s%s |\n", name, domain, op ? "`" : "", op ? ours : "others", op ? "`" : "");
  }
}

int main(void) {
  printf("## Of ONNX\n\n");
  write_ops(NULL);
  printf("\n## Of ONNX Runtime: com.microsoft\n\n");
  write_ops(contrib);
  printf("\n## Of rnncc\n\n");
  write_ops(own);
  printf("\n## Read as another operator\n\n");
  write_read_as();
  return fflush(stdout) != 0;
}
