/* SPDX-License-Identifier: MIT */
#include "emit/describe.h"

#include <inttypes.h>
#include <string.h>

#include "ir/op.h"
#include "machine/targets.h"
#include "program/plan_memory.h"

/* A JSON string that may stand in a script element. */
static void describe_string(Text *out, const char *text) {
  text_add(out, "\"");
  for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c; c++) {
    if (*c < 0x20 || *c == 0x7f || strchr("<>&", *c))
      text_add(out, "\\u%04x", *c);
    else
      text_add(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
  }
  text_add(out, "\"");
}

/* ,"key":"text" */
static void add_text(Text *out, const char *key, const char *text) {
  text_add(out, ",\"%s\":", key);
  describe_string(out, text);
}

static void add_number(Text *out, const char *key, int64_t number) { text_add(out, ",\"%s\":%" PRId64, key, number); }

/* ---- values ---- */

static void add_shape(Text *out, Arena *arena, const Value *value) {
  text_add(out, ",\"shape\":[");
  for (int i = 0; i < value->rank; i++) {
    Text extent = text_new(arena);
    dim_print(&extent, value->shape[i]);
    text_add(out, i ? "," : "");
    describe_string(out, extent.data);
  }
  text_add(out, "]");
}

static const char *const storages[] = {
    [STORAGE_NONE] = "none",         [STORAGE_INPUT] = "input",          [STORAGE_OUTPUT] = "output",
    [STORAGE_ARENA] = "arena",       [STORAGE_WEIGHTS] = "weights",      [STORAGE_PARAMETER] = "parameter",
    [STORAGE_GRADIENT] = "gradient", [STORAGE_BLOCK] = "mutable weights"};

static const Interval *find_interval(const Interval *intervals, int n, const Value *root) {
  for (int i = 0; i < n; i++)
    if (intervals[i].value == root) return &intervals[i];
  return NULL;
}

/* NULL: a value that the plan did not place. */
static const Interval *interval_of(const MemoryPlan *plan, const Value *root) {
  bool in_gradients = root->storage == STORAGE_GRADIENT;
  return in_gradients ? find_interval(plan->in_gradients, plan->n_in_gradients, root)
                      : find_interval(plan->intervals, plan->n_intervals, root);
}

static void add_place(Text *out, const Program *program, const Value *root) {
  const Interval *interval = interval_of(program->plan, root);
  add_text(out, "where", storages[root->storage]);
  if (!interval) {
    add_number(out, "bytes", value_max_bytes(root));
    return;
  }
  add_number(out, "bytes", interval->bytes);
  add_number(out, "at", root->offset);
  add_number(out, "first", interval->first);
  add_number(out, "last", interval->last);
}

static void add_value(Text *out, const Program *program, const Value *root) {
  text_add(out, "{\"id\":%d", root->id);
  add_text(out, "name", root->name);
  add_text(out, "type", dtype_name(root->dtype));
  add_shape(out, program->arena, root);
  if (root->channel_block) add_number(out, "block", root->channel_block);
  add_place(out, program, root);
  text_add(out, "}");
}

/* Those that a call touches. */
static bool *touched_values(const Program *program) {
  bool *touched = ARENA_ARRAY(program->arena, bool, program->n_values + 1);
  for (int i = 0; i < program->n_calls; i++) {
    const Item *item = program->calls[i]->item;
    for (int a = 0; a < item->n_accesses; a++) touched[value_root(item->accesses[a].value)->id] = true;
  }
  return touched;
}

static void add_values(Text *out, const Program *program) {
  const bool *touched = touched_values(program);
  const char *separator = "";
  text_add(out, ",\"values\":[");
  for (int i = 0; i < program->n_values; i++) {
    const Value *value = program->values[i];
    if (value != value_root((Value *)value) || !touched[value->id]) continue;
    text_add(out, "%s", separator);
    add_value(out, program, value);
    separator = ",";
  }
  text_add(out, "]");
}

/* ---- steps ---- */

static void add_ops(Text *out, const char *key, Node *const *nodes, int count) {
  if (!count) return;
  text_add(out, ",\"%s\":[", key);
  for (int i = 0; i < count; i++) text_add(out, "%s\"%s\"", i ? "," : "", nodes[i]->op->name);
  text_add(out, "]");
}

/* What other nodes became part of this one. */
static void add_fused(Text *out, const Node *node) {
  add_ops(out, "before", node->prologue, node->n_prologue);
  add_ops(out, "after", node->epilogue, node->n_epilogue);
  add_ops(out, "chain", node->members, node->n_members);
  if (node->reduction) add_text(out, "reduction", node->reduction->op->name);
  if (node->pool) add_text(out, "pool", node->pool->op->name);
}

/* Each root once. */
static void add_accesses(Text *out, const char *key, const Item *item, AccessMode mode) {
  const char *separator = "";
  text_add(out, ",\"%s\":[", key);
  for (int a = 0; a < item->n_accesses; a++) {
    const Value *root = value_root(item->accesses[a].value);
    bool seen = !(item->accesses[a].mode & mode);
    for (int b = 0; b < a && !seen; b++)
      seen = (item->accesses[b].mode & mode) && value_root(item->accesses[b].value) == root;
    if (seen) continue;
    text_add(out, "%s%d", separator, root->id);
    separator = ",";
  }
  text_add(out, "]");
}

static void add_step(Text *out, const Call *call) {
  const Item *item = call->item;
  const Node *node = item->node;
  const char *schedule = call_schedule(call);
  text_add(out, "{\"node\":");
  describe_string(out, node->name);
  add_text(out, "op", node->op->name);
  add_text(out, "kernel", call->kernel->function);
  if (schedule) add_text(out, "schedule", schedule);
  add_fused(out, node);
  add_accesses(out, "reads", item, READ);
  add_accesses(out, "writes", item, WRITE);
  text_add(out, "}");
}

static void add_steps(Text *out, const Program *program) {
  text_add(out, ",\"steps\":[");
  for (int i = 0; i < program->n_calls; i++) {
    text_add(out, i ? "," : "");
    add_step(out, program->calls[i]);
  }
  text_add(out, "]");
}

/* ---- the module ---- */

/* rnnrun finds the plan of a network for a target by how it begins. */
void describe_program(Text *out, const Program *program) {
  text_add(out, "{\"name\":");
  describe_string(out, program->graph->name);
  add_text(out, "target", program->graph->config->target->name);
  add_number(out, "arena", program->arena_bytes);
  add_number(out, "end", program->plan->end);
  add_values(out, program);
  add_steps(out, program);
  text_add(out, "}");
}
