/* SPDX-License-Identifier: MIT */
/* Model files cut at every byte: those that come with rnncc, and small ONNX files of each element of the format. Those
 * that come with rnncc, by a build with sanitizers at every third; in long tests (RNNCC_LONG_TESTS=1) at every one,
 * too. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/read_or_refuse.h"
#include "../support/sanitized.h"
#include "load/load.h"
#include "load/model.h"
#include "load/onnx/onnx.h"
#include "load/safetensors.h"
#include "outcome.h"

#define MODELS TEST_DATA "/../../../models/"
#define ONNX_FILES TEST_DATA "/../../fuzz/corpus/onnx_model/"

typedef struct Cut {
  const char *path;
  void (*read)(Arena *arena, FileBytes bytes);
  size_t step; /* from one length to the next, behind the first `all` bytes */
  size_t all;
  bool is_refused; /* at each length, and whole it is read */
} Cut;

static void read_model_text(Arena *arena, FileBytes bytes) {
  model_complete(read_json_model(arena, MODELS "model.json", bytes, NULL), NULL);
}

static void read_onnx_file(Arena *arena, FileBytes bytes) {
  model_complete(read_onnx_model(arena, ONNX_FILES "model.onnx", bytes, NULL), NULL);
}

static void read_weights_file(Arena *arena, FileBytes bytes) {
  int count;
  safetensors_read(arena, "weights", bytes, &count);
}

/* Each cut has memory of its own, so that AddressSanitizer sees where it ends. Not the last byte of a text, which is
 * the end of its line. */
static void cut_everywhere(void *given) {
  const Cut *cut = given;
  Arena *arena = arena_new();
  FileBytes whole = file_read(arena, cut->path, SIZE_MAX, LOCATION_FILE(cut->path));
  if (!read_or_refuse(cut->read, whole) && cut->is_refused) exit(3);
  fclose(stderr); /* of thousands of messages */
  for (size_t length = 0; length + 1 < whole.size; length += length < cut->all ? 1 : cut->step) {
    Arena *piece = arena_new();
    bool taken = read_or_refuse(cut->read, (FileBytes){arena_copy(piece, whole.data, length), length});
    if (taken && cut->is_refused) exit(1);
    arena_free(piece);
  }
  arena_free(arena);
}

static void expect_well_cut(Cut *cut) {
  Outcome outcome = outcome_of(cut_everywhere, cut);
  if (outcome.code) fail_msg("%s: %d: %s", cut->path, outcome.code, outcome.messages);
}

static void a_shipped_model_is_refused(void **state) {
  (void)state;
  const char *const paths[] = {MODELS "digits_cnn.json", MODELS "digits_rnn.json", MODELS "hyphenate.json"};
  size_t step = SANITIZED && !getenv("RNNCC_LONG_TESTS") ? 3 : 1;
  for (int i = 0; i < 3; i++) expect_well_cut(&(Cut){paths[i], read_model_text, step, 0, true});
}

/* At each byte of the header, and at some of the numbers. */
static void shipped_weights_are_refused(void **state) {
  (void)state;
  expect_well_cut(&(Cut){MODELS "digits_rnn.safetensors", read_weights_file, 61, 2048, true});
  expect_well_cut(&(Cut){MODELS "digits_cnn.safetensors", read_weights_file, 61, 2048, true});
  expect_well_cut(&(Cut){MODELS "hyphenate.safetensors", read_weights_file, 997, 2048, true});
}

/* Fields may be left out, so what is cut between two may be a model; nor is each file one, whole. */
static void an_onnx_file_is_refused_or_read(void **state) {
  (void)state;
  DIR *folder = opendir(ONNX_FILES);
  assert_non_null(folder);
  int count = 0;
  for (const struct dirent *entry; (entry = readdir(folder));) {
    char path[1024];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, ONNX_FILES "%s", entry->d_name);
    expect_well_cut(&(Cut){path, read_onnx_file, 1, 0, false});
    count++;
  }
  closedir(folder);
  assert_true(count > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_shipped_model_is_refused),
      cmocka_unit_test(shipped_weights_are_refused),
      cmocka_unit_test(an_onnx_file_is_refused_or_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
