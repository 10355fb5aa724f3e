/* SPDX-License-Identifier: MIT */
/* Loading and saving models, for cases in which a process each would cost too much, or values must be examined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "driver/load_model.h"
#include "load/load.h"
#include "outcome.h"
#include "support/files.h"

typedef struct Fixture {
  Arena *arena;
  char *folder, *model, *weights; /* paths */
} Fixture;

static int open_folder(void **state) {
  static Fixture it;
  it.arena = arena_new();
  it.folder = arena_string(it.arena, "/tmp/rnncc-test-XXXXXX"); /* not a temporary: a child's stop() would remove it */
  if (!mkdtemp(it.folder)) return -1;
  it.model = arena_format(it.arena, "%s/m.json", it.folder);
  it.weights = arena_format(it.arena, "%s/w.safetensors", it.folder);
  *state = &it;
  return 0;
}

static int close_folder(void **state) {
  Fixture *it = *state;
  temporary_remove(it->folder);
  arena_free(it->arena);
  return 0;
}

static void load(void *path) {
  Arena *arena = arena_new();
  load_model(arena, path, NULL);
  arena_free(arena);
}

static Graph *load_text(Fixture *it, const char *text) {
  file_write(it->arena, it->model, text, strlen(text));
  return load_model(it->arena, it->model, NULL);
}

static const char SMALL[] =
    "{\"format\": \"rnncc\", \"version\": 1, \"name\": \"m\",\n"
    "\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [2]}], \"outputs\": [\"y\"],\n"
    "\"weights\": [{\"file\": \"w.safetensors\"}],\n"
    "\"nodes\": [{\"op\": \"Add\", \"inputs\": [\"x\", \"c\"], \"outputs\": [\"y\"]}]}";
static const char WEIGHTS[] = "\x40\0\0\0\0\0\0\0"
                              "{\"c\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}   "
                              "\0\0\x80\x3f\0\0\0\x40";
enum { WEIGHTS_BYTES = sizeof WEIGHTS - 1 };

static void write_small(Fixture *it) {
  file_write(it->arena, it->model, SMALL, strlen(SMALL));
  file_write(it->arena, it->weights, WEIGHTS, WEIGHTS_BYTES);
}

/* With a sanitizer a process costs ten times as much; truncation_test cuts at every byte in one process. */
enum { FROM_CUT_TO_CUT = SANITIZED ? 7 : 1 };

static void a_model_cut_at_any_byte_is_refused(void **state) {
  Fixture *it = *state;
  write_small(it);
  Outcome whole = outcome_of(load, it->model);
  expect_outcome(&whole, 0, NULL, NULL);
  for (size_t length = 0; length < strlen(SMALL); length += FROM_CUT_TO_CUT) {
    file_write(it->arena, it->model, SMALL, length);
    Outcome outcome = outcome_of(load, it->model);
    expect_outcome(&outcome, 2, "m.json: byte ", "found the end of the text");
  }
}

static void a_weights_file_cut_at_any_byte_is_refused(void **state) {
  Fixture *it = *state;
  write_small(it);
  for (size_t length = 0; length < WEIGHTS_BYTES; length += FROM_CUT_TO_CUT) {
    file_write(it->arena, it->weights, WEIGHTS, length);
    Outcome outcome = outcome_of(load, it->model);
    expect_outcome(&outcome, 2, "w.safetensors: ", NULL);
  }
}

static void the_hash_covers_model_and_weights_but_not_the_folder(void **state) {
  Fixture *it = *state;
  write_small(it);
  Graph *first = load_model(it->arena, it->model, NULL);
  write_small(it);
  Graph *again = load_model(it->arena, arena_format(it->arena, "%s/../%s", it->folder, it->model + 5), NULL);
  assert_memory_equal(first->model_sha256, again->model_sha256, 32);
  char *other = arena_copy(it->arena, WEIGHTS, WEIGHTS_BYTES);
  other[WEIGHTS_BYTES - 1] ^= 1;
  file_write(it->arena, it->weights, other, WEIGHTS_BYTES);
  assert_memory_not_equal(first->model_sha256, load_model(it->arena, it->model, NULL)->model_sha256, 32);
}

static const Value *find_value(const Graph *graph, const char *name) {
  for (int i = 0; i < graph->n_values; i++)
    if (strcmp(graph->values[i]->name, name) == 0) return graph->values[i];
  fail_msg("no value %s", name);
  return NULL;
}

static void integers_and_special_floats_are_kept(void **state) {
  Fixture *it = *state;
  Graph *graph = load_text(
      it, "{\"format\": \"rnncc\", \"version\": 1, \"name\": \"m\", \"outputs\": [\"y\", \"z\"],"
          "\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [4]}],"
          "\"constants\": {\"i\": {\"dtype\": \"i64\", \"shape\": [2], \"data\": [9223372036854775807, "
          "-9223372036854775808]}, \"f\": {\"dtype\": \"f32\", \"shape\": [4], \"data\": [\"inf\", \"-inf\", \"nan\", "
          "0.1]}},"
          "\"nodes\": [{\"op\": \"Add\", \"inputs\": [\"x\", \"f\"], \"outputs\": [\"y\"]},"
          "{\"op\": \"Gather\", \"inputs\": [\"x\", \"i\"], \"outputs\": [\"z\"]}]}");
  const int64_t *integers = find_value(graph, "i")->data;
  assert_true(integers[0] == INT64_MAX && integers[1] == INT64_MIN);
  const float *floats = find_value(graph, "f")->data;
  assert_true(floats[0] == __builtin_inff() && floats[1] == -__builtin_inff());
  assert_true(floats[2] != floats[2] && floats[3] == 0.1f);
}

/* Weights in which gate g of the given order holds the letter that names it: W [2, G*2, 3], R [2, G*2, 2], B [2,
 * 2*G*2]. */
static void add_gates(Text *json, const char *name, const char *shape, const char *order, int stacks,
                      int gate_elements) {
  text_add(json, "\"%s\": {\"dtype\": \"f32\", \"shape\": %s, \"data\": [", name, shape);
  for (int stack = 0; stack < stacks; stack++)
    for (const char *gate = order; *gate; gate++)
      for (int i = 0; i < gate_elements; i++)
        text_add(json, "%s%d", stack || gate > order || i ? ", " : "", 1000 * stack + 10 * *gate + i);
  text_add(json, "]}");
}

static Graph *load_gates(Fixture *it, const char *op, const char *order, int G) {
  Text json = text_new(it->arena);
  text_add(&json, "{\"format\": \"rnncc\", \"version\": 1, \"name\": \"m\", \"outputs\": [\"y\"],"
                  "\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [5, 1, 3]}], \"constants\": {");
  add_gates(&json, "W", arena_format(it->arena, "[2, %d, 3]", G * 2), order, 2, 6);
  text_add(&json, ", ");
  add_gates(&json, "R", arena_format(it->arena, "[2, %d, 2]", G * 2), order, 2, 4);
  text_add(&json, ", ");
  add_gates(&json, "B", arena_format(it->arena, "[2, %d]", 2 * G * 2), order, 4, 2);
  text_add(&json,
           "}, \"nodes\": [{\"op\": \"%s\", \"inputs\": [\"x\", \"W\", \"R\", \"B\"], \"outputs\": [\"y\"],"
           "\"attributes\": {\"hidden_size\": 2, \"direction\": \"bidirectional\"}, \"gate_order\": \"%s\"}]}",
           op, order);
  return load_text(it, json.data);
}

/* `expected`: the letters of the given order, in ONNX's order. */
static void expect_gates(const Value *value, const char *expected, int stacks, int gate_elements) {
  const float *data = value->data;
  for (int stack = 0; stack < stacks; stack++)
    for (const char *gate = expected; *gate; gate++)
      for (int i = 0; i < gate_elements; i++) assert_true(*data++ == (float)(1000 * stack + 10 * *gate + i));
}

static void gates_of_any_order_become_onnx_ones(void **state) {
  Fixture *it = *state;
  static const char *const CASES[][3] = {
      {"LSTM", "iofc", "iofc"}, {"LSTM", "ifgo", "iofg"}, {"LSTM", "ifco", "iofc"}, {"LSTM", "cfoi", "iofc"},
      {"GRU", "zrh", "zrh"},    {"GRU", "rzn", "zrn"},    {"GRU", "hrz", "zrh"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    Graph *graph = load_gates(it, CASES[i][0], CASES[i][1], (int)strlen(CASES[i][1]));
    expect_gates(graph->nodes[0]->inputs[1], CASES[i][2], 2, 6);
    expect_gates(graph->nodes[0]->inputs[2], CASES[i][2], 2, 4);
    expect_gates(graph->nodes[0]->inputs[3], CASES[i][2], 4, 2);
  }
}

static const char RICH[] =
    "{\"format\": \"rnncc\", \"version\": 1, \"name\": \"na\\\"me\\u0001\", \"model_version\": \"2\","
    "\"dims\": {\"T\": {\"min\": 2, \"opt\": 3, \"max\": 9}, \"B\": {\"max\": 4}},"
    "\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [\"T\", \"B\", 2]}, {\"name\": \"n\", \"dtype\": "
    "\"i32\", \"shape\": [\"B\"]}],"
    "\"states\": [{\"input\": \"h\", \"output\": \"h1\", \"dtype\": \"f32\", \"shape\": [1, \"B\", 1], \"batch_axis\": "
    "1},"
    "{\"input\": \"k\", \"output\": \"k1\", \"dtype\": \"i64\", \"shape\": []}],"
    "\"outputs\": [{\"name\": \"y\"}, \"b\"],"
    "\"constants\": {\"W\": {\"dtype\": \"f32\", \"shape\": [1, 1, 2], \"data\": [0.1, -3e-39]},"
    "\"R\": {\"dtype\": \"f32\", \"shape\": [1, 1, 1], \"data\": [1e38]},"
    "\"one\": {\"dtype\": \"i64\", \"shape\": [], \"data\": [1]}, \"t\": {\"dtype\": \"bool\", \"shape\": [1], "
    "\"data\": "
    "[true]},"
    "\"u\": {\"dtype\": \"u8\", \"shape\": [1], \"data\": [255]}, \"none\": {\"dtype\": \"i64\", \"shape\": [0], "
    "\"data\": "
    "[]}},"
    "\"nodes\": ["
    "{\"op\": \"RNN\", \"name\": \"r\\n\", \"inputs\": [\"x\", \"W\", \"R\", \"\", \"\", \"h\"], \"outputs\": [\"\", "
    "\"h1\"], \"lengths\": \"n\","
    "\"attributes\": {\"hidden_size\": 1, \"clip\": 0.1, \"activations\": [\"Affine\"], \"activation_alpha\": [1, "
    "0.25],"
    "\"activation_beta\": []}},"
    "{\"op\": \"Add\", \"inputs\": [\"k\", \"one\"], \"outputs\": [\"k1\"]},"
    "{\"op\": \"ReduceSum\", \"inputs\": [\"x\", \"none\"], \"outputs\": [\"s\"], \"attributes\": {\"keepdims\": 0}},"
    "{\"op\": \"Constant\", \"outputs\": [\"c\"], \"attributes\": {\"value\": {\"dtype\": \"f32\", \"shape\": [3], "
    "\"data\": [\"nan\", \"-inf\", 0.3]}}},"
    "{\"op\": \"Add\", \"inputs\": [\"s\", \"c\"], \"outputs\": [\"y\"]},"
    "{\"op\": \"And\", \"inputs\": [\"t\", \"t\"], \"outputs\": [\"b\"]},"
    "{\"op\": \"Neg\", \"inputs\": [\"u\"], \"outputs\": [\"dead\"], \"x-why\": \"a name that nothing reads\"}]}";

/* The graph's dump, which shows everything that passes see except values; those are in the saved weights. */
static const char *dump(Fixture *it, Graph *graph) {
  Text text = text_new(it->arena);
  graph_dump(&text, graph);
  return text.data;
}

static FileBytes saved_weights(Fixture *it) {
  char *path = arena_format(it->arena, "%s/saved.safetensors", it->folder);
  return file_read(it->arena, path, SIZE_MAX, LOCATION_FILE(path));
}

static void a_saved_model_loads_as_the_same_graph(void **state) {
  Fixture *it = *state;
  char *saved = arena_format(it->arena, "%s/saved.json", it->folder);
  Graph *graph = load_text(it, RICH);
  save_model(it->arena, graph, saved);
  FileBytes weights = saved_weights(it);
  Graph *again = load_model(it->arena, saved, NULL);
  assert_string_equal(dump(it, graph), dump(it, again));
  save_model(it->arena, again, saved);
  FileBytes weights_again = saved_weights(it);
  assert_int_equal(weights.size, weights_again.size);
  assert_memory_equal(weights.data, weights_again.data, weights.size);
  const Value *tensor = node_attribute(again->nodes[3], ATTR_value)->tensor;
  assert_memory_equal(tensor->data, node_attribute(graph->nodes[3], ATTR_value)->tensor->data, 3 * sizeof(float));
}

/* For several targets, or networks of a bundle. */
static void a_file_is_read_once_for_all_its_graphs(void **state) {
  Fixture *it = *state;
  ModelFiles files = {.arena = it->arena};
  ModelSettings settings = {.files = &files};
  write_small(it);
  Graph *first = load_model(it->arena, it->model, &settings);
  assert_int_equal(unlink(it->model), 0);
  assert_int_equal(unlink(it->weights), 0);
  Graph *again = load_model(it->arena, it->model, &settings);
  assert_memory_equal(first->model_sha256, again->model_sha256, 32);
  assert_ptr_equal(first->nodes[0]->inputs[1]->data, again->nodes[0]->inputs[1]->data);
}

static void values_of_one_name_are_distinguished_when_saved(void **state) {
  Fixture *it = *state;
  char *saved = arena_format(it->arena, "%s/saved.json", it->folder);
  write_small(it);
  Graph *graph = load_model(it->arena, it->model, NULL);
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i] != graph->inputs[0]) graph->values[i]->name = i % 2 ? "x" : "";
  save_model(it->arena, graph, saved);
  Graph *again = load_model(it->arena, saved, NULL);
  assert_string_equal(again->inputs[0]->name, "x");
  assert_int_equal(again->n_values, graph->n_values);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_model_cut_at_any_byte_is_refused),
      IN_FOLDER(a_weights_file_cut_at_any_byte_is_refused),
      IN_FOLDER(the_hash_covers_model_and_weights_but_not_the_folder),
      IN_FOLDER(integers_and_special_floats_are_kept),
      IN_FOLDER(gates_of_any_order_become_onnx_ones),
      IN_FOLDER(a_saved_model_loads_as_the_same_graph),
      IN_FOLDER(a_file_is_read_once_for_all_its_graphs),
      IN_FOLDER(values_of_one_name_are_distinguished_when_saved),
  };
  return cmocka_run_group_tests_name("load_model", tests, NULL, NULL);
}
