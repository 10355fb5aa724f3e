/* SPDX-License-Identifier: MIT */
/*
 * Programs made by hand, without templates. Their one kernel reads a and b, writes y, works in memory, takes n, and
 * finds a dim. A test gives only the operands that it needs.
 */
#ifndef RNNCC_TEST_HAND_PROGRAM_H
#define RNNCC_TEST_HAND_PROGRAM_H

#include "arena_fixture.h"
#include "ir/op.h"
#include "passes.h"
#include "program/build.h"
#include "program/build_internal.h"

static const Parameter hand_parameters[] = {
    {.name = "a", .kind = PARAMETER_POINTER, .points_to_const = true, .element = RNNCC_F32},
    {.name = "b", .kind = PARAMETER_POINTER, .points_to_const = true, .element = RNNCC_F32},
    {.name = "y", .kind = PARAMETER_POINTER, .element = RNNCC_F32},
    {.name = "memory", .kind = PARAMETER_POINTER, .element = RNNCC_F32},
    {.name = "found", .kind = PARAMETER_POINTER, .element = RNNCC_I64},
    {.name = "n", .kind = PARAMETER_INTEGER},
    {.name = "scale", .kind = PARAMETER_FLOAT},
};
static const SpecialisedKernel hand_kernel = {
    .function = "kernel",
    .n_parameters = sizeof hand_parameters / sizeof *hand_parameters,
    .parameters = hand_parameters,
};

/* A program of an empty graph. */
static inline Program *hand_program(void) { return program_new(graph_new(arena)); }

/* f32[floats] */
static inline Value *hand_value(Program *program, int64_t floats) {
  Graph *graph = program->graph;
  Value *value = graph_value(graph, "v", LOCATION_FILE(NULL));
  value->dtype = RNNCC_F32;
  value->rank = 1;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  value->shape[0] = dim_const(graph->dims, floats);
  program_add_value(program, value);
  return value;
}

static inline Value *hand_input(Program *program, int64_t floats) {
  Value *value = hand_value(program, floats);
  value->is_input = true;
  program->graph->inputs = ARENA_ARRAY(arena, Value *, 1);
  program->graph->inputs[0] = value;
  program->graph->n_inputs = 1;
  return value;
}

static inline void hand_output(Program *program, Value *value) {
  program->graph->outputs = ARENA_ARRAY(arena, Value *, 1);
  program->graph->outputs[0] = value;
  program->graph->n_outputs = 1;
}

/* A call, of a node of its own, that reads a value and writes another; NULL: none. */
static inline Call *hand_call(Program *program, const Value *read, const Value *written) {
  Call *call = program_call(program, graph_node(program->graph, op_find("Relu"), "n", 0, 0), &hand_kernel);
  if (read) operand_value(call, "a", read, READ);
  if (written) operand_value(call, "y", written, WRITE);
  return call;
}

/* The number of items of this kind. */
typedef struct HandCount {
  ItemKind kind;
  int count;
} HandCount;

static inline void hand_count_item(Item *item, Block *block, void *context) {
  (void)block;
  HandCount *wanted = context;
  wanted->count += item->kind == wanted->kind;
}

static inline int hand_count(const Program *program, ItemKind kind) {
  HandCount wanted = {.kind = kind};
  each_item(program, hand_count_item, &wanted);
  return wanted.count;
}

#endif
