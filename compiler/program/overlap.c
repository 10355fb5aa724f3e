/* SPDX-License-Identifier: MIT */
#include "program/overlap.h"

#include "ir/family.h"
#include "support/numbers.h"

/* The channel blocks [*begin, *end) of its root that the value covers. False if they are not whole blocks. */
static bool blocks_in_root(const Value *value, int64_t *begin, int64_t *end) {
  if (!value->channel_block) return false;
  int64_t blocks = ceil_div(dim_value(value->shape[1]), value->channel_block);
  for (*begin = 0; value->view_of; value = value->view_of) {
    if (!value_is_part(value)) return false;
    *begin += value->first_block;
  }
  *end = *begin + blocks;
  return true;
}

/* Different channels of one tensor, as the parts of a Concat. */
static bool parts_apart(const Value *a, const Value *b) {
  int64_t a_begin, a_end, b_begin, b_end;
  if (!blocks_in_root(a, &a_begin, &a_end) || !blocks_in_root(b, &b_begin, &b_end)) return false;
  return a_end <= b_begin || b_end <= a_begin;
}

const Value *value_slice(const Value *value) {
  while (value->view_of && !value->at) value = value->view_of;
  return value;
}

/* Two slices of a value that a loop scans, at different places: all slices have one size, so they do not overlap. */
static bool slices_apart(const Value *a, const Value *b) {
  a = value_slice(a);
  b = value_slice(b);
  return a->at && b->at && a->view_of == b->view_of && a->at != b->at;
}

/* Are both the same root, or a slice at the same place? */
static bool same_place(const Value *a, const Value *b) {
  a = value_slice(a);
  b = value_slice(b);
  return a == b || (a->at && a->at == b->at && a->view_of == b->view_of);
}

bool roots_overlap(const Value *x, const Value *y) {
  if (x->storage != y->storage || storage_is_read_only(x->storage)) return false;
  if (x->storage == STORAGE_OUTPUT) return x->slot == y->slot;
  return x->offset < y->offset + value_max_bytes(y) && y->offset < x->offset + value_max_bytes(x);
}

bool accesses_conflict(const Access *a, const Access *b) {
  const Value *x = value_root(a->value), *y = value_root(b->value);
  if (!((a->mode | b->mode) & WRITE)) return false;
  if (x == y && (parts_apart(a->value, b->value) || slices_apart(a->value, b->value))) return false;
  return roots_overlap(x, y);
}

bool accesses_shared(const Node *a_node, const Access *a, const Node *b_node, const Access *b) {
  return a_node == b_node && a->value == b->value && a->sharing && a->sharing == b->sharing;
}

/* What may be written over an input; NULL: nothing. */
static const Value *written_over(const Node *node) {
  if (node->in_place) return node->in_place;
  return node->n_outputs == 1 ? node->outputs[0] : NULL;
}

bool may_overwrite(const Node *node, const Value *written, const Value *read) {
  const Value *output = written_over(node);
  bool found = false;
  if (!node->op->family || !node->op->family->overwrites || !output || !same_place(written, output)) return false;
  for (int i = 0; i < node->n_inputs; i++) {
    if (!node->inputs[i] || !same_place(node->inputs[i], read)) continue;
    if (!node->op->family->overwrites(node, i)) return false;
    found = true;
  }
  return found;
}
