/* SPDX-License-Identifier: MIT */
/* The pointers t<id> that a block's items use. */
#include "emit/unit.h"
#include "layout/blocked.h"
#include "support/diagnostics.h"

const char *indent_of(int depth) {
  static const char spaces[] = "                                                                ";
  int width = 2 * depth;
  return spaces + (sizeof spaces - 1 - (width < 64 ? (size_t)width : 64));
}

/* ` + (64*d3)` for a slice of a value that a loop scans. */
static void add_places(Text *out, const Value *value) {
  for (; value->view_of; value = value->view_of) {
    if (!value->at) continue;
    text_add(out, " + (");
    dim_print_c(out, value->at);
    text_add(out, ")");
  }
}

static bool has_place(const Value *value) {
  for (; value->view_of; value = value->view_of)
    if (value->at) return true;
  return false;
}

/* The caller's buffer, or a part of it: channels of one pixel, whose blocks are the same bytes as the row-major tensor,
 * or a slice. */
static void emit_buffer(Text *out, const Value *value, const char *type, const char *list, int slot) {
  const char *constant = list[0] == 'i' ? "const " : "";
  int64_t first_byte = value_first_byte(value);
  if (first_byte == 0 && !has_place(value)) {
    text_add(out, "run->%s[%d];\n", list, slot);
    return;
  }
  text_add(out, "(%s%s *)(%svoid *)((%sunsigned char *)run->%s[%d]", constant, type, constant, constant, list, slot);
  if (first_byte) text_add(out, " + %lld", (long long)first_byte);
  add_places(out, value);
  text_add(out, ");\n");
}

static void emit_pointer(Text *out, Value *value, int depth) {
  const Value *root = value_root(value);
  const char *type = dtype_c(value->dtype), *constant = storage_is_read_only(root->storage) ? "const " : "";
  text_add(out, "%s%s%s *const t%d = ", indent_of(depth), constant, type, value->id);
  switch (root->storage) {
  case STORAGE_INPUT:
    emit_buffer(out, value, type, "inputs", root->slot);
    break;
  case STORAGE_OUTPUT:
    emit_buffer(out, value, type, "outputs", root->slot);
    break;
  case STORAGE_ARENA:
    text_add(out, "(%s *)(void *)(run->arena + %lld", type, (long long)(root->offset + value_first_byte(value)));
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_WEIGHTS:
    text_add(out, "(const %s *)(const void *)(run->weights + %lld", type, (long long)root->offset);
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_PARAMETER:
    text_add(out, "(const %s *)(const void *)(run->parameters + %lld", type, (long long)root->offset);
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_GRADIENT:
    text_add(out, "(%s *)(void *)(run->gradients + %lld", type, (long long)(root->offset + value_first_byte(value)));
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_BLOCK:
    text_add(out, "(const %s *)(const void *)(run->blocks[%d]", type, root->slot);
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_NONE:
    bug("t%d has no place", value->id);
  }
}

/* Declares pointers to the values that items of a block touch, without regions inside it. */
static void emit_item_pointers(Text *out, const Block *block, int from, int to, bool *done, int depth) {
  for (int i = from; i < to; i++) {
    const Item *item = block->items[i];
    for (int a = 0; a < item->n_accesses; a++) {
      Value *value = item->accesses[a].value;
      if (!done[value->id]) emit_pointer(out, value, depth);
      done[value->id] = true;
    }
    if (item->kind == ITEM_WAVEFRONT) emit_item_pointers(out, item->block, 0, item->block->count, done, depth);
  }
}

void emit_pointers(Text *out, const Program *program, const Block *block, int from, int to, int depth) {
  emit_item_pointers(out, block, from, to, ARENA_ARRAY(program->arena, bool, program->n_values + 1), depth);
}
