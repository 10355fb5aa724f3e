/* SPDX-License-Identifier: MIT */
/* The unit from top to bottom: provenance, headers, kernels, schedule, tables. */
#include <string.h>

#include "emit/unit.h"
#include "ir/family.h"
#include "machine/targets.h"
#include "support/list.h"

void mark_node(Unit *unit, const Node *node) {
  *LIST_ADD(unit->text.arena, unit->marks, unit->n_marks, unit->mark_capacity) = (UnitMark){unit->text.length, node};
}

static const char *isa_macro(Arena *arena, const Target *target) {
  char *macro = arena_format(arena, "SIMD_%s", target->isa);
  for (char *c = macro; *c; c++)
    if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
  return macro;
}

static void add_header(Unit *unit, const char *header) {
  for (int i = 0; i < unit->n_headers; i++)
    if (!strcmp(unit->headers[i], header)) return;
  *LIST_ADD(unit->text.arena, unit->headers, unit->n_headers, unit->header_capacity) = header;
}

static void emit_includes(Unit *unit, const Program *program) {
  add_header(unit, "\"module.h\"");
  add_header(unit, "<stddef.h>");
  for (int i = 0; i < program->n_kernels; i++) {
    const SpecialisedKernel *kernel = program->kernels[i].kernel;
    for (int h = 0; h < kernel->n_includes; h++) add_header(unit, kernel->includes[h]);
  }
  for (int i = 0; i < unit->n_headers; i++) text_add(&unit->text, "#include %s\n", unit->headers[i]);
}

static void emit_kernels(Unit *unit, const Program *program) {
  for (int i = 0; i < program->n_kernels; i++) {
    const ProgramKernel *emitted = &program->kernels[i];
    mark_node(unit, emitted->node);
    text_add(&unit->text, "\n/* ---- kernel %d, first for n%d (%s): %s ---- */\n\n", i, emitted->node->id,
             emitted->node->op->name, emitted->key);
    text_add(&unit->text, "%s", emitted->kernel->text);
  }
  mark_node(unit, NULL);
}

static const char weights_section[] = "__asm__(\".pushsection .rodata.weights, \\\"a\\\"\\n\"\n"
                                      "        \".balign 64\\n\"\n"
                                      "        \".globl \" RNNCC_GLOBAL_TEXT(weights) \"\\n\"\n"
                                      "        \".hidden \" RNNCC_GLOBAL_TEXT(weights) \"\\n\"\n"
                                      "        RNNCC_GLOBAL_TEXT(weights) \":\\n\"\n"
                                      "        \".incbin \\\"weights.bin\\\"\\n\"\n"
                                      "        \".byte 0\\n\"\n"
                                      "        \".popsection\\n\");\n";

static void emit_weights(Unit *unit, const Program *program, bool here) {
  text_add(&unit->text, "\n/* ---- weights: %lld bytes%s ---- */\n\n", (long long)program->weights_file->bytes,
           here ? "" : ", in another unit");
  if (here) text_add(&unit->text, "%s", weights_section);
  text_add(&unit->text, "extern const unsigned char rnncc_weights[] __attribute__((visibility(\"hidden\")));\n");
}

/* Not a fault of the model, and no one's to mend where it is compiled. What is read unset, MemorySanitizer finds. */
static const char left_over[] = "/* Kernels are templates, cut to what they do here: some parameters and variables are "
                                "left over. Pragmas to unroll\n"
                                " * are clang's; other compilers ignore them. */\n"
                                "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
                                "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
                                "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
                                "#pragma GCC diagnostic ignored \"-Wenum-compare\"\n"
                                "#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
                                "#pragma GCC diagnostic ignored \"-Wtype-limits\"\n"
                                "#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n"
                                "#ifndef __clang__ /* gcc's alone: lanes that are read, and dropped */\n"
                                "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n"
                                "#endif\n";

/* Patterns of options have stars beside slashes, which would end the comment, or seem to begin one. */
static void add_to_comment(Text *out, const char *text) {
  for (const char *c = text; *c; c++) {
    bool bracket = (c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*');
    text_add(out, bracket ? "%c " : "%c", *c);
  }
}

Unit *emit_unit(Program *program, const char *build, const UnitPlace *place) {
  const Target *target = program->graph->config->target;
  Unit *unit = ARENA_NEW(program->arena, Unit);
  unit->program = program;
  unit->name = place->name;
  unit->file = place->name ? arena_format(program->arena, "network_%s.c", place->name) : "network.c";
  unit->text = text_new(program->arena);
  text_add(&unit->text, "/* Generated: "); /* SOURCE_BEGINS of link/source_folder.h: the build record is rnncc's */
  add_to_comment(&unit->text, build);
  text_add(&unit->text, ".\n * Values are t<id>, named dimensions d<index>, kernels k<index>. */\n");
  text_add(&unit->text, "#ifndef SIMD_PLAIN /* who only reads this need not read the compiler's headers */\n");
  text_add(&unit->text, "#define %s 1\n#endif\n", isa_macro(program->arena, target));
  text_add(&unit->text, "#define SIMD_PLAIN_LANES %d\n", target->lanes);
  if (place->name) text_add(&unit->text, "#define RNNCC_MODULE module_%s\n", place->name);
  text_add(&unit->text, "%s", left_over);
  emit_includes(unit, program);
  emit_kernels(unit, program);
  emit_weights(unit, program, place->has_weights);
  emit_schedule(unit, program);
  emit_tables(unit, program, build, place);
  return unit;
}
