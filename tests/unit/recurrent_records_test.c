/* SPDX-License-Identifier: MIT */
/* Records of recurrent layers and stacks: which workload and which kernels they belong to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/recurrent/recorded.h"
#include "passes.h"

static const char plain[] = "f32[9,2,16] f32[1,64,16]! f32[1,64,16]!";

static const RecurrentVariant ahead = {.input = INPUT_AHEAD, .workers = 2, .batch_parts = 1};

typedef struct Model {
  Graph *graph;
  Config *config;
  const MmDag *dag;
} Model;

static Model planned(Graph *graph) {
  Model model = {.graph = graph, .config = build_config(graph, "x86-64-v4")};
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  alias_views(graph);
  find_stacks(graph);
  model.dag = mm_dag(graph);
  return model;
}

static Model layer(const char *op, const char *inputs, const char *attributes) {
  Graph *graph = build_graph(arena);
  build_node(graph, op, inputs, arena_format(arena, "hidden_size=16 %s", attributes), 1);
  return planned(graph);
}

static Model stack(void) {
  Graph *graph = build_graph(arena);
  build_node(graph, "LSTM", plain, "hidden_size=16", 1);
  build_node(graph, "Squeeze", "@0 i64=1", "", 1);
  build_node(graph, "LSTM", "@1 f32[1,64,16]! f32[1,64,16]!", "hidden_size=16", 1);
  return planned(graph);
}

static const char *workload(const char *op, const char *inputs, const char *attributes) {
  Model model = layer(op, inputs, attributes);
  return recurrent_key(model.graph, &model.dag->layers[0]).workload;
}

static void layers_of_other_work_have_other_keys(void **state) {
  (void)state;
  const char *const workloads[] = {
      workload("LSTM", plain, ""),
      workload("LSTM", "f32[8,2,16] f32[1,64,16]! f32[1,64,16]!", ""),
      workload("LSTM", "f32[T,2,16] f32[1,64,16]! f32[1,64,16]!", ""),
      workload("LSTM", "f32[50,2,16] f32[1,64,16]! f32[1,64,16]!", ""), /* T at its optimum */
      workload("LSTM", "f32[9,3,16] f32[1,64,16]! f32[1,64,16]!", ""),
      workload("LSTM", "f32[9,B,16] f32[1,64,16]! f32[1,64,16]!", ""),
      workload("LSTM", "f32[9,2,16] f32[2,64,16]! f32[2,64,16]!", "direction=bidirectional"),
      workload("LSTM", plain, "direction=reverse"),
      workload("LSTM", "f32[9,2,16] f32[1,64,16]! f32[1,64,16]! f32[1,128]!", ""),
      workload("LSTM", "f32[9,2,16] f32[1,64,16]! f32[1,64,16]! _ i32[2]", ""),
      workload("LSTM", "f32[9,2,16] f32[1,64,16]! f32[1,64,16]! _ _ f32[1,2,16]", ""),
      workload("LSTM", "f32[9,2,16] f32[1,64,16]! f32[1,64,16]! _ _ _ _ f32[1,48]!", ""),
      workload("LSTM", plain, "clip=3"),
      workload("LSTM", plain, "input_forget=1"),
      workload("LSTM", plain, "activations=[Sigmoid,Tanh,Relu]"),
      workload("LSTM", "f32[2,9,16] f32[1,64,16]! f32[1,64,16]!", "layout=1"),
      workload("GRU", "f32[9,2,16] f32[1,48,16]! f32[1,48,16]!", ""),
      workload("GRU", "f32[9,2,16] f32[1,48,16]! f32[1,48,16]!", "linear_before_reset=1"),
  };
  enum { LAYERS = sizeof workloads / sizeof *workloads };
  for (int i = 0; i < LAYERS; i++)
    for (int j = 0; j < i; j++) assert_string_not_equal(workloads[i], workloads[j]);
  assert_string_equal(workloads[0], "lstm_T9B2of2i16h16");
  assert_string_equal(workloads[2], "lstm_T50of400B2of2i16h16");
}

static void kernels_are_those_of_the_variant(void **state) {
  (void)state;
  Model model = layer("LSTM", plain, "");
  const MmLayer *lstm = &model.dag->layers[0];
  RecurrentVariant step = ahead, alone = ahead;
  step.input = INPUT_WITH_STEP;
  alone.workers = 1;
  const char *kernels = recurrent_kernels(model.graph, lstm, &ahead);
  assert_string_equal(recurrent_kernels(model.graph, lstm, &ahead), kernels);
  assert_string_not_equal(recurrent_kernels(model.graph, lstm, &step), kernels);
  assert_string_not_equal(recurrent_kernels(model.graph, lstm, &alone), kernels);
  model.config->rnn_schedule = "input=step"; /* a forced schedule is no part of a record */
  assert_string_equal(recurrent_kernels(model.graph, lstm, &ahead), kernels);
}

static ScheduleRecords *one_record(RecordKey key, const char *kernels) {
  ScheduleRecords *records = ARENA_NEW(arena, ScheduleRecords);
  const char *schedule = variant_text(arena, &ahead);
  records_add(arena, records, (ScheduleRecord){.key = key, .kernels = kernels, .schedule = schedule});
  return records;
}

static void a_record_of_a_layer_is_used_while_its_kernels_are_the_same(void **state) {
  (void)state;
  Model model = layer("LSTM", plain, "");
  const MmLayer *lstm = &model.dag->layers[0];
  RecordKey key = recurrent_key(model.graph, lstm);
  RecurrentVariant used;
  model.config->records = one_record(key, recurrent_kernels(model.graph, lstm, &ahead));
  assert_non_null(recorded_variant(model.graph, lstm, &used));
  assert_memory_equal(&used, &ahead, sizeof used);
  model.config->records = one_record(key, "0123456789abcdef");
  assert_null(recorded_variant(model.graph, lstm, &used));
  assert_null(recurrent_record(model.graph, lstm, model.config->records));
}

static void a_record_of_a_stack_is_bound_to_the_kernels_of_all_its_layers(void **state) {
  (void)state;
  Model model = stack();
  assert_int_equal(model.graph->n_stacks, 1);
  const Stack *both = &model.graph->stacks[0];
  RecordKey key = stack_key(model.graph, model.dag, both);
  RecurrentVariant used;
  assert_string_equal(key.workload, "lstm_T9B2of2i16h16+lstm_T9B2of2i16h16");
  model.config->records = one_record(key, stack_kernels(model.graph, both, &ahead));
  assert_non_null(recorded_stack(model.graph, model.dag, both, &used));
  model.config->records = one_record(key, recurrent_kernels(model.graph, &model.dag->layers[0], &ahead));
  assert_null(recorded_stack(model.graph, model.dag, both, &used));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(layers_of_other_work_have_other_keys, setup, teardown),
      cmocka_unit_test_setup_teardown(kernels_are_those_of_the_variant, setup, teardown),
      cmocka_unit_test_setup_teardown(a_record_of_a_layer_is_used_while_its_kernels_are_the_same, setup, teardown),
      cmocka_unit_test_setup_teardown(a_record_of_a_stack_is_bound_to_the_kernels_of_all_its_layers, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
