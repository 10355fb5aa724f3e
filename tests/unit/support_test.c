/* SPDX-License-Identifier: MIT */
/* Files, hashes, UTF-8 and suggestions, on which the loader relies. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "outcome.h"
#include "sha256.h"
#include "support/closest.h"
#include "support/files.h"
#include "support/utf8.h"

/* FIPS 180-4's examples, and the two lengths around which padding needs a second block. */
static void sha256_matches_known_digests(void **state) {
  (void)state;
  static const struct {
    char byte;
    size_t repeats;
    const char *hex;
  } CASES[] = {
      {'a', 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {'a', 1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
      {'a', 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {'a', 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {'a', 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      {'a', 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES], *text = test_malloc(CASES[i].repeats + 1);
    memset(text, CASES[i].byte, CASES[i].repeats);
    sha256(text, CASES[i].repeats, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, CASES[i].hex);
    test_free(text);
  }
}

static void sha256_does_not_depend_on_the_pieces(void **state) {
  (void)state;
  uint8_t data[300], whole[SHA256_BYTES], pieces[SHA256_BYTES];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
  sha256(data, sizeof data, whole);
  for (size_t piece = 1; piece < sizeof data; piece++) {
    Sha256 hash = sha256_new();
    for (size_t at = 0; at < sizeof data; at += piece)
      sha256_add(&hash, data + at, at + piece <= sizeof data ? piece : sizeof data - at);
    sha256_end(&hash, pieces);
    assert_memory_equal(whole, pieces, SHA256_BYTES);
  }
}

/* Each accepted sequence decodes to a code point that needs its length, and the number of accepted sequences is right.
 */
static void utf8_takes_each_character_in_its_shortest_form_alone(void **state) {
  (void)state;
  int valid = 0;
  for (uint32_t bits = 0; bits < 1 << 16; bits++) { /* every pair of bytes, alone and with two continuation bytes */
    char text[4] = {(char)(bits >> 8), (char)bits, (char)0x80, (char)0x80};
    unsigned char first = (unsigned char)(bits >> 8), second = (unsigned char)bits;
    int length = utf8_character(text, 4);
    valid += length > 0;
    uint32_t point = first < 0x80  ? first
                     : length == 2 ? (first & 31u) << 6 | (second & 63u)
                     : length == 3 ? (first & 15u) << 12 | (second & 63u) << 6
                                   : (first & 7u) << 18 | (second & 63u) << 12;
    uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : length == 2 ? 0x80 : 0;
    if (length > 0) assert_true(point >= least && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff));
  }
  /* First bytes: 128 of ASCII with any second; 30 of two bytes; 16 of three, less the overlong and surrogate halves; 5
   * of four, less overlong and beyond. */
  assert_int_equal(valid, 128 * 256 + 30 * 64 + (14 * 64 + 2 * 32) + (3 * 64 + 48 + 16));
  assert_int_equal(utf8_character("\xc3", 1), 0);
}

static void a_prefix_cuts_no_character(void **state) {
  (void)state;
  static const size_t EXPECTED[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t limit = 0; limit < 12; limit++)
    assert_int_equal(utf8_prefix("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", limit), EXPECTED[limit]);
}

static void a_slip_is_suggested_and_another_word_is_not(void **state) {
  (void)state;
  static const struct {
    const char *word;
    bool close;
  } CASES[] = {{"output", true},  {"outptus", true}, {"OUTPUTS", true}, {"outputss", true},
               {"inputs", false}, {"out", false},    {"shape", false},  {"", false}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    Closest closest = closest_to(CASES[i].word);
    closest_try(&closest, "outputs");
    assert_int_equal(closest.best != NULL, CASES[i].close);
  }
}

typedef struct Fixture {
  Arena *arena;
  char *folder, *file;
} Fixture;

static int open_folder(void **state) {
  static Fixture it;
  it.arena = arena_new();
  it.folder = arena_string(it.arena, "/tmp/rnncc-test-XXXXXX");
  if (!mkdtemp(it.folder)) return -1;
  it.file = arena_format(it.arena, "%s/file", it.folder);
  *state = &it;
  return 0;
}

static int close_folder(void **state) {
  Fixture *it = *state;
  temporary_remove(it->folder);
  arena_free(it->arena);
  return 0;
}

static void expect_content(Fixture *it, const char *content) {
  FileBytes bytes = file_read(it->arena, it->file, 100, LOCATION_FILE(it->file));
  assert_string_equal((const char *)bytes.data, content);
}

static void writing_replaces_the_whole_file(void **state) {
  Fixture *it = *state;
  file_write(it->arena, it->file, "first, longer", 13);
  file_write(it->arena, it->file, "second", 6);
  expect_content(it, "second");
  struct stat status;
  assert_int_equal(stat(it->file, &status), 0);
  mode_t mask = umask(0);
  umask(mask);
  assert_int_equal(status.st_mode & 0777, 0666 & ~mask); /* the mode of any new file, not of mkstemp's */
}

static void start_writing_and_stop(void *file) {
  static Arena *arena; /* static: stop() does not come back to free it, and the leak checker must still find it */
  arena = arena_new();
  const char *temporary = temporary_beside(arena, file);
  int descriptor = open(temporary, O_WRONLY);
  if (write(descriptor, "half", 4) != 4) bug("cannot write");
  stop(EXIT_LIMIT);
}

static void stopping_leaves_the_old_file_and_nothing_else(void **state) {
  Fixture *it = *state;
  file_write(it->arena, it->file, "old", 3);
  Outcome outcome = outcome_of(start_writing_and_stop, it->file);
  expect_outcome(&outcome, 4, NULL, NULL);
  expect_content(it, "old");
  assert_int_equal(unlink(it->file), 0);
  assert_int_equal(rmdir(it->folder), 0); /* it is empty */
  assert_int_equal(mkdir(it->folder, 0700), 0);
}

static void write_file(void *file) {
  Arena *arena = arena_new();
  file_write(arena, file, "new", 3);
  arena_free(arena);
}

/* A process that has a temporary folder, whose path it writes to `path`, and waits. */
static pid_t start_working(Fixture *it, char path[64]) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails, it ends */
    const char *folder = temporary_directory(it->arena);
    file_write(it->arena, arena_format(it->arena, "%s/file", folder), "content", 7);
    if (write(ends[1], folder, strlen(folder) + 1) < 0) _exit(1);
    for (;;) pause();
  }
  close(ends[1]);
  assert_true(read(ends[0], path, 64) > 0);
  close(ends[0]);
  return child;
}

static void kill_and_wait(pid_t child) {
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

static void folders_of_killed_processes_are_removed_and_those_of_others_stay(void **state) {
  Fixture *it = *state;
  char left[64], used[64], *elsewhere = arena_format(it->arena, "%s/rnncc.other.123456", it->folder);
  setenv("TMPDIR", it->folder, 1);
  kill_and_wait(start_working(it, left));
  pid_t working = start_working(it, used);
  assert_int_equal(mkdir(elsewhere, 0700), 0);
  const char *own = temporary_directory(it->arena);
  assert_int_equal(access(left, F_OK), -1);
  assert_int_equal(access(arena_format(it->arena, "%s/file", used), F_OK), 0);
  assert_int_equal(access(elsewhere, F_OK), 0); /* of another machine */
  assert_int_equal(access(own, F_OK), 0);
  kill_and_wait(working);
  temporary_remove(own);
  unsetenv("TMPDIR");
}

static void a_device_is_never_replaced(void **state) {
  (void)state;
  Outcome outcome = outcome_of(write_file, "/dev/null");
  expect_outcome(&outcome, 2, "/dev/null", "expected a regular file");
  struct stat status;
  assert_int_equal(stat("/dev/null", &status), 0);
  assert_true(S_ISCHR(status.st_mode));
}

static void a_folder_that_is_absent_is_reported(void **state) {
  Fixture *it = *state;
  Outcome outcome = outcome_of(write_file, arena_format(it->arena, "%s/absent/file", it->folder));
  expect_outcome(&outcome, 5, "absent/file", "No such file or directory");
}

static void read_ten_bytes(void *file) {
  Arena *arena = arena_new();
  file_read(arena, file, 10, LOCATION_FILE(file));
  arena_free(arena);
}

static void a_file_over_the_limit_is_not_read(void **state) {
  Fixture *it = *state;
  file_write(it->arena, it->file, "0123456789", 10);
  Outcome ten = outcome_of(read_ten_bytes, it->file);
  expect_outcome(&ten, 0, NULL, NULL);
  file_write(it->arena, it->file, "0123456789a", 11);
  Outcome eleven = outcome_of(read_ten_bytes, it->file);
  expect_outcome(&eleven, 4, "11 bytes; at most 10", NULL);
}

static void a_suffix_is_of_the_last_part(void **state) {
  Fixture *it = *state;
  static const char *const CASES[][2] = {{"m.json", "m.so"},
                                         {"a.b/m", "a.b/m.so"},
                                         {"a/m.x.json", "a/m.x.so"},
                                         {".json", ".json.so"},
                                         {"a/.json", "a/.json.so"}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    assert_string_equal(file_with_suffix(it->arena, CASES[i][0], ".so"), CASES[i][1]);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sha256_matches_known_digests),
      cmocka_unit_test(sha256_does_not_depend_on_the_pieces),
      cmocka_unit_test(utf8_takes_each_character_in_its_shortest_form_alone),
      cmocka_unit_test(a_prefix_cuts_no_character),
      cmocka_unit_test(a_slip_is_suggested_and_another_word_is_not),
      IN_FOLDER(writing_replaces_the_whole_file),
      IN_FOLDER(stopping_leaves_the_old_file_and_nothing_else),
      IN_FOLDER(folders_of_killed_processes_are_removed_and_those_of_others_stay),
      cmocka_unit_test(a_device_is_never_replaced),
      IN_FOLDER(a_folder_that_is_absent_is_reported),
      IN_FOLDER(a_file_over_the_limit_is_not_read),
      IN_FOLDER(a_suffix_is_of_the_last_part),
  };
  return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
