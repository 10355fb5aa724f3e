/* SPDX-License-Identifier: MIT */
#include "program/dump.h"

#include "ir/family.h"
#include "ir/op.h"

/* ---- operands ---- */

static void add_access(Text *out, const Access *access) {
  static const char *const MODES[] = {[READ] = "read", [WRITE] = "write", [READ_WRITE] = "read+write"};
  static const char *const SHARINGS[] = {
      [SHARED_BY_ALL] = "", [SHARED_APART] = " apart", [SHARED_BY_WORKER] = " by worker"};
  text_add(out, "%s t%d", MODES[access->mode], access->value->id);
  if (!dim_is_const(access->offset) || dim_value(access->offset) != 0) {
    text_add(out, "+");
    dim_print(out, access->offset);
  }
  if (access->bytes) {
    text_add(out, " ");
    dim_print(out, access->bytes);
    text_add(out, " bytes");
  }
  text_add(out, "%s", SHARINGS[access->sharing]);
}

static void add_accesses(Text *out, const Item *item, const Operand *operand) {
  text_add(out, "[");
  for (int k = 0; k < operand->count; k++) {
    if (k) text_add(out, ", ");
    add_access(out, &item->accesses[operand->access + k]);
  }
  text_add(out, "]");
}

static void add_integers(Text *out, const Operand *operand) {
  text_add(out, "[");
  for (int k = 0; k < operand->count; k++) text_add(out, "%s%lld", k ? ", " : "", (long long)operand->integers[k]);
  text_add(out, "]");
}

static void add_operand(Text *out, const Item *item, const Operand *operand) {
  static const char *const SUPPLIED[] = {[SUPPLIED_TEAM] = "team",
                                         [SUPPLIED_ALONE] = "a team of one",
                                         [SUPPLIED_RUN] = "run",
                                         [SUPPLIED_FAULT] = "fault",
                                         [SUPPLIED_TURN] = "turn"};
  switch (operand->kind) {
  case OPERAND_NONE:
    text_add(out, "?");
    break;
  case OPERAND_VALUE:
    add_access(out, &item->accesses[operand->access]);
    break;
  case OPERAND_VALUES:
    add_accesses(out, item, operand);
    break;
  case OPERAND_NULL:
    text_add(out, "null");
    break;
  case OPERAND_DIM:
    dim_print(out, operand->dims[0]);
    break;
  case OPERAND_DIMS:
    dims_print(out, operand->count, operand->dims);
    break;
  case OPERAND_INTEGER:
    text_add(out, "%lld", (long long)operand->integers[0]);
    break;
  case OPERAND_INTEGERS:
    add_integers(out, operand);
    break;
  case OPERAND_FLOAT:
    text_add(out, "%.9g", operand->number);
    break;
  case OPERAND_FOUND:
    text_add(out, "finds %s", operand->found ? operand->found->name : "what nobody asks for");
    break;
  case OPERAND_SUPPLIED:
    text_add(out, "%s", SUPPLIED[operand->supplied]);
    break;
  }
}

/* ---- items ---- */

static void add_loop(Text *out, const Item *item) {
  text_add(out, "loop %s", item->symbol->name);
  if (item->dim) {
    text_add(out, " below ");
    dim_print(out, item->dim);
  } else if (item->n_accesses) {
    text_add(out, " below t%d", item->accesses[0].value->id);
  }
}

static void add_wavefront(Text *out, const Wavefront *wavefront) {
  text_add(out, "wavefront of %d layers, %s and %s: chunks of %d of ", wavefront->layers, wavefront->first->name,
           wavefront->count->name, wavefront->chunk);
  dim_print(out, wavefront->steps);
  text_add(out, " steps");
}

static void add_set(Text *out, const Item *item) {
  text_add(out, "%s = ", item->symbol->name);
  dim_print(out, item->dim);
}

void item_text(Text *out, const Item *item) {
  switch (item->kind) {
  case ITEM_CALL:
    text_add(out, "%s", item->call->kernel->function);
    break;
  case ITEM_BARRIER:
    text_add(out, "barrier");
    break;
  case ITEM_LOAD_DIM:
    text_add(out, "load %s", item->symbol->name);
    break;
  case ITEM_SET_DIM:
    add_set(out, item);
    break;
  case ITEM_STORE_DIM:
    text_add(out, "store %s", item->symbol->name);
    break;
  case ITEM_BREAK_UNLESS:
    text_add(out, "break unless t%d", item->accesses[0].value->id);
    break;
  case ITEM_IF:
    text_add(out, "if t%d", item->accesses[0].value->id);
    break;
  case ITEM_LOOP:
    add_loop(out, item);
    break;
  case ITEM_SCOPE:
    text_add(out, "scope");
    break;
  case ITEM_WAVEFRONT:
    add_wavefront(out, item->wavefront);
    break;
  }
}

static void add_indent(Text *out, int depth) {
  for (int i = 0; i < depth; i++) text_add(out, "  ");
}

static void dump_guard(Text *out, const Call *call, int depth) {
  if (!call->n_guard) return;
  add_indent(out, depth);
  text_add(out, call->when ? "where positive:" : "unless empty:");
  for (int i = 0; i < call->n_guard; i++)
    for (int k = 0; k < call->guard[i].count; k++) {
      text_add(out, k ? " and " : i ? " or " : " ");
      dim_print(out, call->guard[i].list[k]);
    }
  text_add(out, "\n");
}

static void dump_call(Text *out, const Item *item, int depth) {
  const Call *call = item->call;
  const char *schedule = call_schedule(call);
  if (schedule) text_add(out, " %s", schedule);
  text_add(out, "\n");
  dump_guard(out, call, depth + 1);
  for (int i = 0; i < call->kernel->n_parameters; i++) {
    add_indent(out, depth + 1);
    text_add(out, "%s = ", call->kernel->parameters[i].name);
    add_operand(out, item, &call->operands[i]);
    text_add(out, "\n");
  }
}

static void dump_block(Text *out, const Block *block, int depth);

static void dump_item(Text *out, const Item *item, int depth) {
  add_indent(out, depth);
  item_text(out, item);
  if (item->node) text_add(out, " n%d %s", item->node->id, item->node->op->name);
  if (item->call) {
    dump_call(out, item, depth);
    return;
  }
  text_add(out, "\n");
  if (item->block) dump_block(out, item->block, depth + 1);
  if (!item->other) return;
  add_indent(out, depth);
  text_add(out, "else\n");
  dump_block(out, item->other, depth + 1);
}

static void dump_block(Text *out, const Block *block, int depth) {
  for (int i = 0; i < block->count; i++) dump_item(out, block->items[i], depth);
}

/* ---- values ---- */

static void dump_place(Text *out, const Value *value) {
  value_dump_place(out, " ", value);
  if (!value->view_of) return;
  text_add(out, " view of t%d", value->view_of->id);
  if (value_is_part(value)) text_add(out, " from block %lld", (long long)value->first_block);
  if (!value->at) return;
  text_add(out, " from byte ");
  dim_print(out, value->at);
}

static void dump_value(Text *out, const Value *value) {
  text_add(out, "t%d: %s", value->id, dtype_name(value->dtype));
  dims_print(out, value->rank, value->shape);
  if (value->channel_block) text_add(out, " in blocks of %d channels", value->channel_block);
  dump_place(out, value);
  text_add(out, " ");
  text_quoted(out, value->name ? value->name : "");
  text_add(out, "\n");
}

/* ---- all of it ---- */

static void note_touched(Item *item, Block *block, void *context) {
  (void)block;
  bool *touched = context;
  for (int a = 0; a < item->n_accesses; a++)
    for (const Value *value = item->accesses[a].value; value; value = value->view_of) touched[value->id] = true;
}

static void dump_dims(Text *out, const DimTable *dims) {
  for (int i = 0; i < dim_symbol_count(dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(dims, i);
    text_add(out, "dim d%d: %lld..%lld ", i, (long long)symbol->min, (long long)symbol->max);
    text_quoted(out, symbol->name);
    text_add(out, "\n");
  }
}

void program_dump(Text *out, const Program *program) {
  text_add(out, "program ");
  text_quoted(out, program->graph->name ? program->graph->name : "");
  text_add(out, "\n");
  dump_dims(out, program->graph->dims);
  bool *touched = ARENA_ARRAY(program->arena, bool, program->n_values + 1);
  each_item(program, note_touched, touched);
  for (int i = 0; i < program->n_values; i++)
    if (touched[i]) dump_value(out, program->values[i]);
  dump_block(out, program->schedule, 0);
}
