/* SPDX-License-Identifier: MIT */
/* The records that come with rnncc, schedules/<target>.jsonl: each has a valid schedule of its workload, and is bound
 * to the current kernels. Layers are rebuilt from the workloads' texts, and must give the same texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/conv/candidates.h"
#include "kernels/conv/recorded.h"
#include "machine/machine.h"
#include "passes.h"
#include "support/data_directory.h"

/* ---- a layer from a workload's text ---- */

/* "n1c64k64_h56k3s1p1.1_w56k3s1p1.1_in16_bias_residual_then.Relu"; absent parts are 1, or nothing. */
typedef struct Described {
  int images, channels, kernels, groups;
  int extent[2], window[2], stride[2], dilation[2], begin[2], end[2];
  bool bias, residual;
  const char *after, *then; /* "Relu", of chains the first; NULL: none */
} Described;

/* The number after `letter`; *at moves behind it. `absent` if another letter is there. */
static int number(const char **at, char letter, int absent) {
  char *end;
  if (**at != letter) return absent;
  int value = (int)strtol(*at + 1, &end, 10);
  *at = end;
  return value;
}

static void read_axis(Described *d, int axis, const char *at) {
  d->extent[axis] = number(&at, "hw"[axis], 0);
  d->window[axis] = number(&at, 'k', 0);
  d->stride[axis] = number(&at, 's', 1);
  d->dilation[axis] = number(&at, 'd', 1);
  d->begin[axis] = number(&at, 'p', 0);
  d->end[axis] = number(&at, '.', 0);
}

static void read_part(Described *d, const char *part) {
  if (*part == 'h' || *part == 'w') read_axis(d, *part == 'w', part);
  d->bias |= !strcmp(part, "bias");
  d->residual |= !strcmp(part, "residual");
  if (!strncmp(part, "after.", 6)) d->after = part + 6;
  if (!strncmp(part, "then.", 5)) d->then = part + 5;
}

static Described read_workload(const char *workload) {
  Described d = {0};
  char *text = arena_string(arena, workload);
  for (char *part = strtok(text, "_"); part; part = strtok(NULL, "_")) read_part(&d, part);
  d.images = number(&workload, 'n', 0);
  d.channels = number(&workload, 'c', 0);
  d.kernels = number(&workload, 'k', 0);
  d.groups = number(&workload, 'g', 1);
  return d;
}

/* A batch normalisation and an activation before it. */
static const char *add_prologue(Graph *graph, const char *x, int channels) {
  build_node(graph, "BatchNormalization",
             arena_format(arena, "%s f32[%d]! f32[%d]! f32[%d]! f32[%d]!", x, channels, channels, channels, channels),
             "", 1);
  build_node(graph, "Relu", "@0", "", 1);
  return "@1";
}

static void add_convolution(Graph *graph, const Described *d, const char *x) {
  const char *weights =
      arena_format(arena, "f32[%d,%d,%d,%d]!%s", d->groups * d->kernels, d->channels, d->window[0], d->window[1],
                   d->bias ? arena_format(arena, " f32[%d]!", d->kernels * d->groups) : "");
  const char *attributes =
      arena_format(arena, "group=%d strides=[%d,%d] dilations=[%d,%d] pads=[%d,%d,%d,%d]", d->groups, d->stride[0],
                   d->stride[1], d->dilation[0], d->dilation[1], d->begin[0], d->begin[1], d->end[0], d->end[1]);
  build_node(graph, "Conv", arena_format(arena, "%s %s", x, weights), attributes, 1);
}

static int extent_after(const Described *d, int axis) {
  return (d->extent[axis] + d->begin[axis] + d->end[axis] - (d->window[axis] - 1) * d->dilation[axis] - 1) /
             d->stride[axis] +
         1;
}

static const char *last(const Graph *graph) { return arena_format(arena, "@%d", graph->n_nodes - 1); }

static const Node *layer_of(Graph *graph, const Described *d) {
  int channels = d->groups * d->channels;
  const char *x = arena_format(arena, "f32[%d,%d,%d,%d]", d->images, channels, d->extent[0], d->extent[1]);
  if (d->after) x = add_prologue(graph, x, channels);
  add_convolution(graph, d, x);
  if (d->residual)
    build_node(graph, "Add",
               arena_format(arena, "%s f32[%d,%d,%d,%d]", last(graph), d->images, d->groups * d->kernels,
                            extent_after(d, 0), extent_after(d, 1)),
               "", 1);
  if (d->then)
    build_node(graph, d->then,
               arena_format(arena, "%s%s", last(graph), strcmp(d->then, "Clip") ? "" : " f32[]! f32[]!"), "", 1);
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  fuse_prologue(graph);
  fuse_epilogue(graph);
  choose_layouts(graph);
  insert_layout_transforms(graph);
  return producer_named(graph, "Conv");
}

/* ---- the records ---- */

static void set_machine(Config *config, const RecordKey *key) {
  Machine *machine = arena_copy(arena, config->machine, sizeof *machine);
  machine->cores = (int)key->cores;
  machine->l1_bytes = key->l1_bytes;
  machine->l2_bytes = key->l2_bytes;
  machine->l3_bytes = key->l3_bytes;
  config->machine = machine;
}

static void expect_current(const ScheduleRecord *record) {
  Graph *graph = build_graph(arena);
  set_machine(build_config(graph, record->key.target), &record->key);
  const Described described = read_workload(record->key.workload);
  const Node *node = layer_of(graph, &described);
  RecordKey key = convolution_key(graph, node, node->layout);
  assert_string_equal(key.workload, record->key.workload);
  if (!record_is_of(record, &key)) fail_msg("%s: it is of another machine", key.workload);
  const char *why;
  ConvSchedule *schedule = convolution_of_text(graph, node, node->layout, record->schedule, &why);
  if (!schedule) fail_msg("%s: %s: %s", key.workload, record->schedule, why);
  const char *kernels = convolution_kernels(graph, node, schedule);
  if (!record->kernels || strcmp(record->kernels, kernels) != 0)
    fail_msg("%s: %s: kernels %s, expected %s", key.workload, record->schedule, record->kernels, kernels);
}

static void expect_current_records(const char *target) {
  ScheduleRecords *records =
      records_read(arena, arena_format(arena, "%s/schedules/%s.jsonl", data_directory(arena), target));
  Arena *of_file = arena;
  assert_true(records->count > 0);
  for (int i = 0; i < records->count; i += SANITIZED ? 10 : 1) {
    arena = arena_new(); /* weights are large, and layers many */
    expect_current(&records->list[i]);
    arena_free(arena);
  }
  arena = of_file;
}

static void records_for_avx512_are_of_the_kernels_as_they_are(void **state) {
  (void)state;
  expect_current_records("x86-64-v4");
}

static void records_for_avx2_are_of_the_kernels_as_they_are(void **state) {
  (void)state;
  expect_current_records("x86-64-v3");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(records_for_avx512_are_of_the_kernels_as_they_are, setup, teardown),
      cmocka_unit_test_setup_teardown(records_for_avx2_are_of_the_kernels_as_they_are, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
