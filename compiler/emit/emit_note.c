/* SPDX-License-Identifier: MIT */
/*
 * ELF notes that say what the module is: in the lines that `rnnrun inspect` prints, and as JSON for the pages of
 * `rnnrun profile --html`. They are read without loading the module, so on a machine that cannot load it.
 */
#include <string.h>

#include "emit/describe.h"
#include "emit/unit.h"
#include "ir/mutable.h"
#include "machine/targets.h"

/* Names of the model may hold line ends. */
static void add_name(Text *out, const char *name) {
  for (const char *c = name ? name : ""; *c; c++) {
    bool control = (unsigned char)*c < 0x20 || *c == 0x7f;
    text_add(out, control ? "\\x%02x" : "%c", (unsigned char)*c);
  }
}

static void add_field(Text *out, const char *field, const char *name) {
  text_add(out, "%-8s ", field);
  add_name(out, name);
  text_add(out, "\n");
}

static void add_extent(Text *out, const Dim *extent) {
  const DimSymbol *symbol = dim_as_symbol(extent);
  if (dim_is_const(extent))
    text_add(out, "%lld", (long long)dim_value(extent));
  else if (symbol && symbol->kind == DIM_GIVEN)
    add_name(out, symbol->name);
  else
    text_add(out, "<=%lld", (long long)dim_upper(extent));
}

static void add_tensor(Text *out, const char *kind, const Value *value) {
  text_add(out, "%-8s ", kind);
  add_name(out, value->name);
  text_add(out, " %s [", dtype_name(value->dtype));
  for (int i = 0; i < value->rank; i++) {
    text_add(out, "%s", i ? ", " : "");
    add_extent(out, value->shape[i]);
  }
  text_add(out, "]");
}

static void add_tensors(Text *out, const char *kind, Value *const *values, int count) {
  for (int i = 0; i < count; i++) {
    add_tensor(out, kind, values[i]);
    text_add(out, "\n");
  }
}

static void add_dims(Text *out, const Graph *graph) {
  for (int i = 0; i < dim_given_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    text_add(out, "%-8s ", "dim");
    add_name(out, symbol->name);
    text_add(out, " %lld to %lld, optimum %lld", (long long)symbol->min, (long long)symbol->max,
             (long long)symbol->opt);
    if (symbol->multiple > 1) text_add(out, ", multiples of %lld", (long long)symbol->multiple);
    text_add(out, "\n");
  }
}

static void add_states(Text *out, const Graph *graph) {
  for (int i = 0; i < graph->n_states; i++) {
    long long slots = state_slots(&graph->states[i]);
    add_tensor(out, "state", graph->states[i].input);
    text_add(out, ", %lld slot%s\n", slots, slots == 1 ? "" : "s");
  }
}

/* Of weights that a program can set. */
static void add_mutables(Text *out, const MutableWeights *m) {
  for (int i = 0; m && i < m->n_weights; i++) {
    add_tensor(out, "weight", m->weights[i].given);
    text_add(out, "\n");
  }
}

static Text description(const Program *program, const char *build) {
  const Graph *graph = program->graph;
  Text out = text_new(program->arena);
  add_field(&out, "model", graph->name);
  if (graph->version && *graph->version) add_field(&out, "version", graph->version);
  add_dims(&out, graph);
  add_tensors(&out, "input", graph->inputs, graph_own_inputs(graph));
  add_tensors(&out, "output", graph->outputs, graph_own_outputs(graph));
  add_states(&out, graph);
  add_mutables(&out, graph->mutables);
  add_field(&out, "isa", graph->config->target->isa);
  add_field(&out, "target", graph->config->target->name);
  text_add(&out, "%-8s %lld bytes packed, sha256 %s\n", "weights", (long long)program->weights_bytes,
           weights_sha256(program));
  if (program->n_weights) add_field(&out, "types", weights_by_type(program));
  text_add(&out, "%-8s %lld bytes a context\n", "memory", (long long)program->arena_bytes);
  add_field(&out, "build", build);
  return out;
}

/* ---- the notes ---- */

/* Kinds of notes, as tools/rnnrun/elf_file.h has them. */
enum { NOTE_LINES = 1, NOTE_PLAN = 2 };

/* Literals of a length that every compiler takes. */
static void emit_pieces(Text *out, Arena *arena, const char *text) {
  enum { PIECE = 1000 };
  for (size_t left = strlen(text); left; text += left < PIECE ? left : PIECE, left -= left < PIECE ? left : PIECE) {
    text_add(out, "\n    ");
    text_quoted(out, arena_format(arena, "%.*s", PIECE, text));
  }
}

static void begin_note(Text *out, const char *name, int kind, size_t bytes) {
  text_add(out,
           "\nstatic const struct {\n  uint32_t name_bytes, text_bytes, kind;\n  char name[8], text[%zu];\n"
           "} %s __attribute__((section(\".note.rnncc\"), used, aligned(4))) = {\n"
           "    sizeof \"rnncc\", sizeof %s.text, %d, \"rnncc\",",
           bytes, name, name, kind);
}

/* A literal for each line. */
static void emit_lines(Text *out, char *lines) {
  for (char *end; (end = strchr(lines, '\n')); lines = end + 1) {
    *end = 0;
    text_add(out, "\n    ");
    text_quoted(out, lines);
    text_add(out, " \"\\n\"");
  }
}

void emit_note(Text *out, const Program *program, const char *build) {
  Text text = description(program, build);
  begin_note(out, "note", NOTE_LINES, text.length + 1);
  emit_lines(out, text.data);
  text_add(out, "};\n");
  Text plan = text_new(program->arena);
  describe_program(&plan, program);
  begin_note(out, "plan_note", NOTE_PLAN, plan.length + 1);
  emit_pieces(out, program->arena, plan.data);
  text_add(out, "};\n");
}
