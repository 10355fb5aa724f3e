/* SPDX-License-Identifier: MIT */
/* The request is one Config: bodies within bodies share the model's, and a trial's differs in its schedule alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "driver/steps.h"
#include "ir/bodies.h"
#include "ir_build.h"
#include "load/model.h"
#include "schedules/records.h"
#include "tune/trial_case.h"

/* A convolution, and an If in an If. Neither condition is known. */
static const char MODEL[] =
    "{\"format\": \"rnncc\", \"version\": 1, \"name\": \"m\", \"outputs\": [\"y\"], \"inputs\": ["
    "{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [1, 1, 4, 4]},"
    "{\"name\": \"p\", \"dtype\": \"bool\", \"shape\": []}, {\"name\": \"q\", \"dtype\": \"bool\", \"shape\": []}],"
    "\"constants\": {\"w\": {\"dtype\": \"f32\", \"shape\": [1, 1, 1, 1], \"data\": [2]}}, \"nodes\": ["
    "{\"op\": \"Conv\", \"inputs\": [\"x\", \"w\"], \"outputs\": [\"c\"]},"
    "{\"op\": \"If\", \"inputs\": [\"p\"], \"outputs\": [\"y\"], \"attributes\": {"
    "  \"else_branch\": {\"outputs\": [\"a\"], \"nodes\": [{\"op\": \"Neg\", \"inputs\": [\"c\"], \"outputs\": "
    "[\"a\"]}]},"
    "  \"then_branch\": {\"outputs\": [\"a\"], \"nodes\": ["
    "    {\"op\": \"If\", \"inputs\": [\"q\"], \"outputs\": [\"a\"], \"attributes\": {"
    "      \"then_branch\": {\"outputs\": [\"b\"], \"nodes\": [{\"op\": \"Abs\", \"inputs\": [\"c\"], \"outputs\": "
    "[\"b\"]}]},"
    "      \"else_branch\": {\"outputs\": [\"b\"], \"nodes\": [{\"op\": \"Exp\", \"inputs\": [\"c\"], \"outputs\": "
    "[\"b\"]}]}"
    "    }}]}}}]}";

static Graph *model(void) {
  Graph *graph = read_json_model(arena, "m.json", (FileBytes){(const unsigned char *)MODEL, sizeof MODEL - 1}, NULL);
  Config *config = build_config(graph, "x86-64-v4");
  config->records = ARENA_NEW(arena, ScheduleRecords);
  config->rnn_schedule = "workers=1";
  config->layout_search = LAYOUT_SEARCH_WIDE;
  config->no_winograd = true;
  sort_nodes(graph);
  graph_renumber(graph);
  Options options = {.verb = VERB_COMPILE};
  run_steps(compilation_of_graph(&options, graph, STEP_verify), LAST_LAYOUT_STEP);
  return graph;
}

static const Config *expected;
static int n_graphs;

static void has_the_config(Graph *graph) {
  assert_ptr_equal(graph->config, expected);
  n_graphs++;
}

static void all_bodies_share_the_config(void **state) {
  (void)state;
  Graph *graph = model();
  expected = graph->config;
  n_graphs = 0;
  graph_each(graph, has_the_config);
  assert_int_equal(n_graphs, 5);
}

static void a_trial_differs_in_its_schedule_alone(void **state) {
  (void)state;
  Graph *graph = model();
  Config config;
  memcpy(&config, graph->config, sizeof config);
  const Node *node = producer_named(graph, "Conv");
  TrialCase trial = trial_case(arena, graph, node, node->layout);
  const Config *tried = trial_graph(&trial, "direct")->config;
  assert_string_equal(tried->conv_schedule, "direct");
  config.conv_schedule = tried->conv_schedule;
  assert_memory_equal(tried, &config, sizeof config);
  assert_null(graph->config->conv_schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(all_bodies_share_the_config, setup, teardown),
      cmocka_unit_test_setup_teardown(a_trial_differs_in_its_schedule_alone, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
