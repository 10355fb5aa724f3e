/* SPDX-License-Identifier: MIT */
/* The tables of weights that can change: what each block is, and the copies that pack (runtime/module.h). */
#include "emit/unit.h"
#include "ir/mutable.h"

static void emit_given(Text *out, const MutableWeights *m) {
  text_add(out, "\nstatic const size_t given_weights[] = {");
  for (int i = 0; i < m->n_weights; i++)
    text_add(out, "%s%lld,", i % 8 ? " " : "\n  ", (long long)m->weights[i].given->offset);
  text_add(out, "\n};\n");
}

static void emit_block_bytes(Text *out, const MutableWeights *m) {
  text_add(out, "\nstatic const size_t block_bytes[] = {");
  for (int i = 0; i < mutable_blocks(m); i++)
    text_add(out, "%s%lld,", i % 8 ? " " : "\n  ", (long long)mutable_block_bytes(m, i));
  text_add(out, "\n};\n");
}

static void emit_numbers(Text *out, const char *field, const int64_t *numbers, int count) {
  text_add(out, ", .%s = {", field);
  for (int i = 0; i < count; i++) text_add(out, "%s%lld", i ? ", " : "", (long long)numbers[i]);
  text_add(out, "%s}", count ? "" : "0");
}

static void emit_copy(Text *out, const WeightCopy *copy) {
  text_add(out, "  {.source = %d, .target = %d, .dtype = %s, .adds = %d, .rank = %d, .from = %lld, .to = %lld",
           copy->source, copy->target, dtype_info(copy->dtype)->constant, copy->adds, copy->rank, (long long)copy->from,
           (long long)copy->to);
  emit_numbers(out, "extents", copy->extents, copy->rank);
  emit_numbers(out, "from_strides", copy->from_strides, copy->rank);
  emit_numbers(out, "to_strides", copy->to_strides, copy->rank);
  text_add(out, "},\n");
}

static void emit_copies(Text *out, const MutableWeights *m) {
  if (!m->n_copies) return;
  text_add(out, "\nstatic const ModuleCopy copies[] = {\n");
  for (int i = 0; i < m->n_copies; i++) emit_copy(out, &m->copies[i]);
  text_add(out, "};\n");
}

static void emit_kept(Text *out, const Program *program) {
  const MutableWeights *m = program->graph->mutables;
  const bool *kept = kept_weights(program);
  text_add(out, "\nstatic const unsigned char kept[] = {");
  for (int i = 0; i < m->n_weights; i++) text_add(out, "%s%d,", i % 32 ? " " : "\n  ", kept[i]);
  text_add(out, "\n};\n");
}

static void emit_parts_of(Text *out, const char *name, Value *const *values, int count, const int *parts) {
  text_add(out, "\nstatic const int32_t %s[] = {", name);
  for (int i = 0; i < count; i++)
    text_add(out, "%s%d,", i % 16 ? " " : "\n  ", values[i]->id >= 0 ? parts[values[i]->id] : -1);
  text_add(out, "\n};\n");
}

/* Which part of the derivation reads a weight, and which makes a derived value. */
static void emit_derives(Text *out, const MutableWeights *m) {
  if (!m->derivation) return;
  int count;
  const int *parts = derivation_parts(m->derivation->arena, m->derivation, &count);
  emit_parts_of(out, "derives", m->derivation->inputs, m->n_weights, parts);
  emit_parts_of(out, "derived_parts", m->derivation->outputs, m->n_derived, parts);
}

void emit_mutable(Text *out, const Program *program, const char *derivation) {
  const MutableWeights *m = program->graph->mutables;
  Value **weights = ARENA_ARRAY(program->arena, Value *, m->n_weights);
  for (int i = 0; i < m->n_weights; i++) weights[i] = m->weights[i].given;
  emit_tensors(out, "weights", weights, m->n_weights);
  emit_given(out, m);
  emit_block_bytes(out, m);
  emit_copies(out, m);
  emit_kept(out, program);
  emit_derives(out, m);
  if (derivation) text_add(out, "\nextern const Module RNNCC_GLOBAL(module_%s);\n", derivation);
  text_add(out, "\nstatic const ModuleMutable mutable_weights = {\n");
  text_add(out, "  .given = given_weights, .kept = kept, .n_blocks = %d, .block_bytes = block_bytes,\n",
           mutable_blocks(m));
  if (m->n_copies) text_add(out, "  .copies = copies, .n_copies = %d,\n", m->n_copies);
  if (derivation)
    text_add(out,
             "  .derivation = &RNNCC_GLOBAL(module_%s), .derives = derives, .derived_parts = derived_parts, .n_derived "
             "= %d,\n",
             derivation, m->n_derived);
  text_add(out, "};\n");
}
