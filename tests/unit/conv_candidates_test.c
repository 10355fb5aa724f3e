/* SPDX-License-Identifier: MIT */
/* Candidates of convolutions, their text forms, and how a database of records changes the choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/conv/candidates.h"
#include "kernels/conv/recorded.h"
#include "outcome.h"
#include "passes.h"

static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64", "aarch64-linux-gnu", "riscv64-linux-gnu"};
enum { TARGETS = 5, CONVOLUTIONS = SANITIZED ? 10 : 40 };

static int below(int n) { return (int)(random() % n); }
static int one_of(const int *numbers, int n) { return numbers[below(n)]; }
#define ONE_OF(...) one_of((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static Graph *new_graph(const char *target) {
  Graph *graph = build_graph(arena);
  build_config(graph, target);
  return graph;
}

/* A convolution with its layouts, and its graph. */
typedef struct Layer {
  Graph *graph;
  Node *node;
} Layer;

static Layer lay_out(Graph *graph) {
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  fuse_prologue(graph);
  fuse_epilogue(graph);
  choose_layouts(graph);
  insert_layout_transforms(graph);
  return (Layer){graph, producer_named(graph, "Conv")};
}

/* For every algorithm: dense, 1x1, depthwise, grouped; with an epilogue, a prologue, or neither; with one image, or a
 * number of images that is not known. */
static Layer random_convolution(const char *target) {
  Graph *graph = new_graph(target);
  int kind = below(4), groups = kind == 3 ? ONE_OF(2, 3) : kind == 2 ? ONE_OF(16, 24, 33) : 1;
  int channels = kind == 2 ? 1 : ONE_OF(1, 3, 16, 32, 48, 100);
  int kernels = groups * (kind == 2 ? 1 : ONE_OF(8, 16, 40, 96));
  int window = kind == 1 ? 1 : ONE_OF(3, 3, 5, 7), stride = ONE_OF(1, 1, 2), pad = window / 2, extent = 7 + below(40);
  const char *x = arena_format(arena, "f32[%s,%d,%d,%d]", below(2) ? "1" : "B", groups * channels, extent, extent);
  if (kind == 1 && below(2)) {
    build_node(graph, "BatchNormalization",
               arena_format(arena, "%s f32[%d]! f32[%d]! f32[%d]! f32[%d]!", x, channels, channels, channels, channels),
               "", 1);
    x = "@0";
  }
  int conv = graph->n_nodes;
  build_node(
      graph, "Conv", arena_format(arena, "%s f32[%d,%d,%d,%d]!", x, kernels, channels, window, window),
      arena_format(arena, "group=%d strides=[%d,%d] pads=[%d,%d,%d,%d]", groups, stride, stride, pad, pad, pad, pad),
      1);
  if (below(2)) build_node(graph, "Relu", arena_format(arena, "@%d", conv), "", 1);
  return lay_out(graph);
}

static Layer convolution_for(const char *target, const char *x, const char *w, const char *attributes) {
  Graph *graph = new_graph(target);
  build_node(graph, "Conv", arena_format(arena, "%s %s", x, w), attributes, 1);
  return lay_out(graph);
}

static Layer fixed_convolution(const char *x, const char *w, const char *attributes) {
  return convolution_for("x86-64-v4", x, w, attributes);
}

/* ---- forms ---- */

static const char *schedule_text(const ConvSchedule *schedule) {
  return schedule_print(arena, schedule->base.kind, &schedule->base.knobs);
}

static void expect_round_trip(Layer layer, const ConvCandidate *candidate) {
  const char *form = convolution_text(arena, candidate), *why = NULL;
  ConvSchedule *made = convolution_of_text(layer.graph, layer.node, layer.node->layout, form, &why);
  ConvSchedule *listed = convolution_schedule(layer.graph, layer.node, layer.node->layout, candidate);
  if (!made) fail_msg("%s is refused: %s", form, why);
  assert_string_equal(schedule_text(made), form);
  assert_string_equal(made->base.text, listed->base.text);
  assert_true(made->seconds == candidate->seconds && listed->seconds == candidate->seconds);
}

static void every_candidate_is_made_again_of_its_form(void **state) {
  (void)state;
  for (int i = 0; i < TARGETS * CONVOLUTIONS; i++) {
    Layer layer = random_convolution(targets[i % TARGETS]);
    ConvCandidates all = convolution_candidates(layer.graph, layer.node, layer.node->layout);
    for (int c = 0; c < all.count; c++) expect_round_trip(layer, &all.list[c]);
  }
}

static void the_first_candidate_is_what_is_taken_without_a_list(void **state) {
  (void)state;
  for (int i = 0; i < TARGETS * CONVOLUTIONS; i++) {
    Layer layer = random_convolution(targets[i % TARGETS]);
    ConvCandidates all = convolution_candidates(layer.graph, layer.node, layer.node->layout);
    ConvCandidate first = convolution_first(layer.graph, layer.node, layer.node->layout);
    ConvSchedule *chosen = convolution_choose(layer.graph, layer.node, layer.node->layout);
    assert_true(all.count > 1);
    assert_string_equal(convolution_text(arena, &first), convolution_text(arena, all.list));
    assert_string_equal(schedule_text(chosen), convolution_text(arena, all.list));
  }
}

static void no_two_candidates_are_the_same(void **state) {
  (void)state;
  for (int i = 0; i < TARGETS; i++) {
    Layer layer = random_convolution(targets[i]);
    ConvCandidates all = convolution_candidates(layer.graph, layer.node, layer.node->layout);
    for (int c = 0; c < all.count; c++)
      for (int d = 0; d < c; d++)
        assert_true(all.list[c].algorithm != all.list[d].algorithm ||
                    memcmp(&all.list[c].knobs, &all.list[d].knobs, sizeof all.list->knobs) != 0);
  }
}

static void a_layer_of_resnet_has_candidates_of_all_knobs(void **state) {
  (void)state;
  Layer layer = fixed_convolution("f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]");
  ConvCandidates all = convolution_candidates(layer.graph, layer.node, layer.node->layout);
  static const char *const parts[] = {"direct,oc=1,", "direct,oc=4,", "px=14",   "px=7",    "unroll=1",    "unroll=4",
                                      "tiles=0",      "tiles=32",     "tile=4,", "tile=2,", "by_groups=1", "parts=3"};
  for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
    int count = 0;
    for (int c = 0; c < all.count; c++) count += strstr(convolution_text(arena, &all.list[c]), parts[p]) != NULL;
    if (!count) fail_msg("no candidate has %s", parts[p]);
  }
}

/* All channels of a block where sixteen registers hold few sums; one where a product takes the place of an operand. */
static void few_sums_are_unrolled_further(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"x86-64-v4", "unroll=2,"},
                                        {"x86-64-v3", "unroll=8,"},
                                        {"x86-64", "unroll=1,"},
                                        {"aarch64-linux-gnu", "unroll=2,"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Layer layer = convolution_for(rows[i][0], "f32[1,64,56,56]", "f32[64,64,1,1]!", "");
    ConvCandidate first = convolution_first(layer.graph, layer.node, layer.node->layout);
    const char *text = convolution_text(arena, &first);
    if (!strstr(text, rows[i][1])) fail_msg("%s: expected %s in %s", rows[i][0], rows[i][1], text);
  }
}

/* Beside 15 weights one sum was left of 16 registers, and a variant for each of 14 columns at the edges: too many. */
static void wide_windows_of_depthwise_layers_leave_registers_to_sums(void **state) {
  (void)state;
  Layer layer = convolution_for("x86-64-v3", "f32[1,256,1,200]", "f32[256,1,1,15]!", "group=256 pads=[0,7,0,7]");
  assert_string_equal(schedule_text(convolution_choose(layer.graph, layer.node, layer.node->layout)),
                      "depthwise,px=14,by_blocks=1");
}

/* Bands of small planes have long borders. Of large ones, or with strides, the rows at borders are fewer than what the
 * layers beside would read of others. */
static void depthwise_layers_of_small_planes_divide_channels_among_workers(void **state) {
  (void)state;
  static const char *const rows[][4] = {
      {"f32[1,384,14,14]", "f32[384,1,3,3]!", "group=384 pads=[1,1,1,1]", "by_blocks=1"},
      {"f32[1,960,7,7]", "f32[960,1,3,3]!", "group=960 pads=[1,1,1,1]", "by_blocks=1"},
      {"f32[1,32,112,112]", "f32[32,1,3,3]!", "group=32 pads=[1,1,1,1]", "by_blocks=0"},
      {"f32[1,96,112,112]", "f32[96,1,3,3]!", "group=96 pads=[1,1,1,1] strides=[2,2]", "by_blocks=0"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Layer layer = convolution_for("x86-64-v3", rows[i][0], rows[i][1], rows[i][2]);
    const char *text = schedule_text(convolution_choose(layer.graph, layer.node, layer.node->layout));
    if (!strstr(text, rows[i][3])) fail_msg("%s: expected %s in %s", rows[i][0], rows[i][3], text);
  }
}

/* For a 3x3 convolution of 64 channels and four vectors of kernels. */
static void forms_that_are_none_of_the_layer_are_refused_with_the_reason(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"", "expected an algorithm"},
      {"straight", "expected an algorithm"},
      {"direct", "every knob"},
      {"direct,oc=2", "every knob"},
      {"direct,oc=2,px=14,unroll=2,pass=0,groups=0,tiles=8,", "expected an algorithm and its KEY=N"},
      {"direct,oc=2,px=14,unroll=2,pass=0,groups=0,tile=8", "`tile=8`"},
      {"direct,oc=2,px=14,unroll=2,pass=0,groups=0,oc=8", "`oc=8`"},
      {"direct,oc=2,px=14,unroll=2,pass=0,groups=0,tiles=-1", "`tiles=-1`"},
      {"direct,oc=2,px=14,unroll=2,pass=0,groups=0,tiles=99999999", "`tiles=99999999`"},
      {"direct,oc=0,px=14,unroll=2,pass=0,groups=0,tiles=8", "expected oc=1, found oc=0"},
      {"direct,oc=5,px=14,unroll=2,pass=0,groups=0,tiles=8", "expected oc=4, found oc=5"},
      {"direct,oc=2,px=29,unroll=2,pass=0,groups=0,tiles=8", "expected px=28, found px=29"},
      {"direct,oc=2,px=14,unroll=17,pass=0,groups=0,tiles=8", "expected unroll=16, found unroll=17"},
      {"winograd,tile=3,oc=2,by_groups=0,parts=2", "found tile=3"},
      {"winograd,tile=4,oc=5,by_groups=0,parts=2", "expected oc=4, found oc=5"},
      {"winograd,tile=4,oc=2,by_groups=2,parts=2", "expected by_groups=1, found by_groups=2"},
      {"winograd,tile=4,oc=2,by_groups=1,parts=0", "expected parts=1, found parts=0"},
      {"depthwise,px=4,by_blocks=0", "depthwise does not run this convolution"},
      {"plain,k=4,w=2,flat=0,tiles=0", "plain does not run this convolution"},
  };
  Layer layer = fixed_convolution("f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *why = "";
    if (convolution_of_text(layer.graph, layer.node, layer.node->layout, rows[i][0], &why))
      fail_msg("%s is taken", rows[i][0]);
    if (!strstr(why, rows[i][1])) fail_msg("%s: %s, not %s", rows[i][0], why, rows[i][1]);
  }
}

/* ---- keys ---- */

static const char *workload_of(const char *x, const char *w, const char *attributes) {
  Layer layer = fixed_convolution(x, w, attributes);
  return convolution_key(layer.graph, layer.node, layer.node->layout).workload;
}

static void layers_of_other_work_have_other_keys(void **state) {
  (void)state;
  static const char *const layers[][3] = {
      {"f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]"},
      {"f32[2,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]"},
      {"f32[B,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]"},
      {"f32[1,64,55,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]"},
      {"f32[1,64,56,55]", "f32[64,64,3,3]!", "pads=[1,1,1,1]"},
      {"f32[1,48,56,56]", "f32[64,48,3,3]!", "pads=[1,1,1,1]"},
      {"f32[1,64,56,56]", "f32[96,64,3,3]!", "pads=[1,1,1,1]"},
      {"f32[1,64,56,56]", "f32[64,64,1,3]!", "pads=[1,1,1,1]"},
      {"f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[0,1,1,1]"},
      {"f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,0]"},
      {"f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1] strides=[1,2]"},
      {"f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1] dilations=[2,1]"},
      {"f32[1,64,56,56]", "f32[64,32,3,3]!", "pads=[1,1,1,1] group=2"},
      {"f32[1,32,56,56]", "f32[32,32,3,3]!", "pads=[1,1,1,1]"}, /* one of its groups */
      {"f32[1,16,3,4]", "f32[16,1,3,3]!", "group=16"},          /* no tensor of it is blocked */
      {"f32[1,16,3,4]", "f32[16,1,3,3]", "group=16"},
      {"f32[1,64,7,56,56]", "f32[64,64,3,3,3]!", "pads=[1,1,1,1,1,1]"},
      {"f32[1,64,9,56,56]", "f32[64,64,3,3,3]!", "pads=[1,1,1,1,1,1]"},
      {"f32[1,64,56,56]", "f32[64,64,3,3]! f32[64]!", "pads=[1,1,1,1]"},
  };
  enum { LAYERS = sizeof layers / sizeof *layers };
  const char *workloads[LAYERS];
  for (int i = 0; i < LAYERS; i++) {
    workloads[i] = workload_of(layers[i][0], layers[i][1], layers[i][2]);
    assert_string_equal(workloads[i], workload_of(layers[i][0], layers[i][1], layers[i][2]));
    for (int j = 0; j < i; j++) assert_string_not_equal(workloads[i], workloads[j]);
  }
  assert_string_equal(workloads[0], "n1c64k64_h56k3s1p1.1_w56k3s1p1.1_in16");
}

/* The key of a convolution of 64 channels after, beside or before another node, whose operand is `beside`. */
static RecordKey key_fused(const char *before, const char *after, const char *beside, const char *weights) {
  Graph *graph = new_graph("x86-64-v4");
  const char *x = "f32[1,64,56,56]";
  if (before) build_node(graph, before, arena_format(arena, "%s f32[64]! f32[64]! f32[64]! f32[64]!", x), "", 1);
  int conv = before ? 1 : 0;
  build_node(graph, "Conv", arena_format(arena, "%s %s", before ? "@0" : x, weights), "", 1);
  if (after) build_node(graph, after, arena_format(arena, "@%d %s", conv, beside), "", 1);
  Layer layer = lay_out(graph);
  return convolution_key(layer.graph, layer.node, layer.node->layout);
}

static void what_is_fused_into_a_layer_is_of_its_key(void **state) {
  (void)state;
  static const char own[] = "f32[64,64,1,1]!", given[] = "f32[64,64,1,1]";
  const char *workloads[] = {key_fused(NULL, NULL, "", own).workload,
                             key_fused("BatchNormalization", NULL, "", own).workload,
                             key_fused(NULL, "Relu", "", own).workload,
                             key_fused(NULL, "Tanh", "", own).workload,
                             key_fused(NULL, "Add", "f32[1,64,56,56]", own).workload,
                             key_fused(NULL, NULL, "", given).workload};
  enum { LAYERS = sizeof workloads / sizeof *workloads };
  for (int i = 0; i < LAYERS; i++)
    for (int j = 0; j < i; j++) assert_string_not_equal(workloads[i], workloads[j]);
}

static void how_a_layer_may_run_is_of_its_key(void **state) {
  (void)state;
  Layer layer = fixed_convolution("f32[1,64,56,56]", "f32[64,64,3,3]!", "pads=[1,1,1,1]");
  RecordKey plain = convolution_key(layer.graph, layer.node, layer.node->layout);
  assert_int_equal(plain.cores, 2);
  assert_int_equal(plain.l2_bytes, layer.graph->config->machine->l2_bytes);
  assert_string_equal(plain.target, "x86-64-v4");
  build_config(layer.graph, "x86-64-v4")->no_winograd = true;
  assert_string_not_equal(convolution_key(layer.graph, layer.node, layer.node->layout).workload, plain.workload);
}

/* ---- databases ---- */

enum { LAYERS = 8, FLIPS = SANITIZED ? 250 : 1000, MAX_BYTES = 1 << 14 };

/* Layers, the record of each, and the choice for it without a record. */
typedef struct Database {
  char path[64];
  Layer layers[LAYERS];
  const char *recorded[LAYERS], *first[LAYERS];
  char bytes[MAX_BYTES];
  size_t size;
} Database;

static void write_bytes(const Database *database) {
  FILE *file = fopen(database->path, "wb");
  if (!file || fwrite(database->bytes, 1, database->size, file) != database->size || fclose(file) != 0)
    stop(EXIT_ENVIRONMENT);
}

/* Makes lines like old ones: `,"sum":"01234567"` is left out. */
static void drop_sums(Database *database) {
  for (char *sum; (sum = strstr(database->bytes, ",\"sum\""));) {
    const char *rest = strchr(sum, '}');
    memmove(sum, rest, strlen(rest) + 1);
  }
  database->size = strlen(database->bytes);
}

static Database *new_database(void) {
  Database *database = ARENA_NEW(arena, Database);
  snprintf(database->path, sizeof database->path, "/tmp/rnncc_candidates_XXXXXX");
  int file = mkstemp(database->path);
  assert_true(file >= 0 && close(file) == 0);
  for (int i = 0; i < LAYERS; i++) {
    Layer layer = database->layers[i] = random_convolution("x86-64-v4");
    ConvCandidates all = convolution_candidates(layer.graph, layer.node, layer.node->layout);
    database->first[i] = convolution_text(arena, all.list);
    const ConvCandidate *candidate = &all.list[1 + below(all.count - 1)];
    database->recorded[i] = convolution_text(arena, candidate);
    ConvSchedule *schedule = convolution_schedule(layer.graph, layer.node, layer.node->layout, candidate);
    ScheduleRecord record = {.key = convolution_key(layer.graph, layer.node, layer.node->layout),
                             .kernels = convolution_kernels(layer.graph, layer.node, schedule),
                             .schedule = database->recorded[i]};
    records_append(arena, database->path, &record);
  }
  FILE *records = fopen(database->path, "rb");
  assert_non_null(records);
  database->size = fread(database->bytes, 1, MAX_BYTES - 1, records);
  assert_int_equal(fclose(records), 0);
  return database;
}

static const char *choice(const Database *database, int i, ScheduleRecords *records) {
  Layer layer = database->layers[i];
  build_config(layer.graph, "x86-64-v4")->records = records;
  return schedule_text(convolution_choose(layer.graph, layer.node, layer.node->layout));
}

static void what_is_recorded_is_taken(void **state) {
  (void)state;
  Database *database = new_database();
  ScheduleRecords *records = records_read(arena, database->path);
  for (int i = 0; i < LAYERS; i++) assert_string_equal(choice(database, i, records), database->recorded[i]);
  for (int i = 0; i < records->count; i++) records->list[i].status = i % 2 ? "wrong" : "ok";
  for (int i = 0; i < LAYERS; i++) assert_string_equal(choice(database, i, records), database->first[i]);
  unlink(database->path);
}

typedef struct Flipping {
  Database *database;
  bool (*expected)(const Database *database, int layer, const char *form);
} Flipping;

static void choose_with_each_bit_flipped(void *argument) {
  const Flipping *flipping = argument;
  Database *database = flipping->database;
  for (int flip = 0; flip < FLIPS; flip++) {
    char *byte = &database->bytes[below((int)database->size)], before = *byte;
    *byte = (char)(before ^ 1 << below(8));
    write_bytes(database);
    ScheduleRecords *records = records_read(arena, database->path);
    for (int i = 0; i < LAYERS; i++)
      if (!flipping->expected(database, i, choice(database, i, records))) stop(EXIT_MISMATCH);
    *byte = before;
  }
}

static bool recorded_or_first(const Database *database, int layer, const char *form) {
  return !strcmp(form, database->recorded[layer]) || !strcmp(form, database->first[layer]);
}

static void of_lines_with_a_sum_a_flipped_bit_leaves_the_record_or_the_first_candidate(void **state) {
  (void)state;
  Flipping flipping = {new_database(), recorded_or_first};
  Outcome outcome = outcome_of(choose_with_each_bit_flipped, &flipping);
  unlink(flipping.database->path);
  assert_int_equal(outcome.code, EXIT_OK);
}

/* tests/graphs/test_recorded_convolutions.py shows that the kernel computes the same with each of these forms. */
static bool legal(const Database *database, int layer, const char *form) {
  const char *why;
  const Node *node = database->layers[layer].node;
  return convolution_of_text(database->layers[layer].graph, node, node->layout, form, &why) != NULL;
}

static void of_lines_without_one_it_leaves_a_legal_schedule(void **state) {
  (void)state;
  Flipping flipping = {new_database(), legal};
  drop_sums(flipping.database);
  Outcome outcome = outcome_of(choose_with_each_bit_flipped, &flipping);
  unlink(flipping.database->path);
  assert_int_equal(outcome.code, EXIT_OK);
}

static void read_and_choose_all(void *argument) {
  Database *database = argument;
  ScheduleRecords *records = records_read(arena, database->path);
  for (int i = 0; i < LAYERS; i++) choice(database, i, records);
}

static void schedules_that_are_none_are_reported_once_a_file(void **state) {
  (void)state;
  Database *database = new_database();
  drop_sums(database);
  for (char *oc = database->bytes; (oc = strstr(oc, "\"schedule\":\"")); oc++) memset(oc + 12, 'x', 3);
  write_bytes(database);
  Outcome outcome = outcome_of(read_and_choose_all, database);
  unlink(database->path);
  expect_outcome(&outcome, EXIT_OK, "is not used", database->path);
  assert_null(strstr(strstr(outcome.messages, "warning") + 1, "warning"));
}

static void records_of_other_kernels_are_reported_once_a_file(void **state) {
  (void)state;
  Database *database = new_database();
  drop_sums(database);
  for (char *at = database->bytes; (at = strstr(at, "\"kernels\":\"")); at++) memset(at + 11, '0', 4);
  write_bytes(database);
  Outcome outcome = outcome_of(read_and_choose_all, database);
  unlink(database->path);
  expect_outcome(&outcome, EXIT_OK, "is of another version of its kernels and is not used", database->path);
  assert_null(strstr(strstr(outcome.messages, "warning") + 1, "warning"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(every_candidate_is_made_again_of_its_form),
      TEST(the_first_candidate_is_what_is_taken_without_a_list),
      TEST(no_two_candidates_are_the_same),
      TEST(a_layer_of_resnet_has_candidates_of_all_knobs),
      TEST(few_sums_are_unrolled_further),
      TEST(wide_windows_of_depthwise_layers_leave_registers_to_sums),
      TEST(depthwise_layers_of_small_planes_divide_channels_among_workers),
      TEST(forms_that_are_none_of_the_layer_are_refused_with_the_reason),
      TEST(layers_of_other_work_have_other_keys),
      TEST(what_is_fused_into_a_layer_is_of_its_key),
      TEST(how_a_layer_may_run_is_of_its_key),
      TEST(what_is_recorded_is_taken),
      TEST(of_lines_with_a_sum_a_flipped_bit_leaves_the_record_or_the_first_candidate),
      TEST(of_lines_without_one_it_leaves_a_legal_schedule),
      TEST(schedules_that_are_none_are_reported_once_a_file),
      TEST(records_of_other_kernels_are_reported_once_a_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
