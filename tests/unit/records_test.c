/* SPDX-License-Identifier: MIT */
/* Schedule records: a written record is found again, by its whole key; lines that are not records do no harm. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "outcome.h"
#include "schedules/records.h"
#include "support/diagnostics.h"

static char path[64];

static int setup_file(void **state) {
  snprintf(path, sizeof path, "/tmp/rnncc_records_XXXXXX");
  int file = mkstemp(path);
  return file < 0 || close(file) != 0 || setup(state);
}

static int teardown_file(void **state) {
  unlink(path);
  return teardown(state);
}

static ScheduleRecord record_of(const char *workload, const char *schedule) {
  return (ScheduleRecord){.key = {.family = "recurrent",
                                  .workload = workload,
                                  .target = "x86-64-v4",
                                  .cores = 2,
                                  .l1_bytes = 1 << 15,
                                  .l2_bytes = 1 << 20,
                                  .l3_bytes = 1 << 25},
                          .kernels = "0123456789abcdef",
                          .schedule = schedule,
                          .median_us = 12.5};
}

static void append(const char *workload, const char *schedule) {
  ScheduleRecord record = record_of(workload, schedule);
  records_append(arena, path, &record);
}

static void append_text(const char *text) {
  FILE *file = fopen(path, "ab");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

/* The fingerprint of a record's kernels is what its schedule says, except for those of record_of(). */
static const char *kernels_of(void *layer, const ScheduleRecord *record, const char **why) {
  (void)layer;
  *why = "it is none";
  if (!strcmp(record->schedule, "none")) return NULL;
  return strcmp(record->schedule, "changed") ? "0123456789abcdef" : "fedcba9876543210";
}

static const ScheduleRecord *find(const ScheduleRecords *records, const RecordKey *key) {
  return records_find(records, key, kernels_of, NULL);
}

static void an_appended_record_is_found_and_of_equal_keys_the_later(void **state) {
  (void)state;
  append("a", "first");
  append("b", "other");
  append("a", "second");
  ScheduleRecords *records = records_read(arena, path);
  assert_int_equal(records->count, 3);
  ScheduleRecord wanted = record_of("a", "");
  const ScheduleRecord *found = find(records, &wanted.key);
  assert_non_null(found);
  assert_string_equal(found->schedule, "second");
  assert_true(found->median_us > 12.4 && found->median_us < 12.6);
}

static void a_record_whose_key_differs_anywhere_is_not_found(void **state) {
  (void)state;
  append("a", "s");
  ScheduleRecords *records = records_read(arena, path);
  RecordKey key = record_of("a", "").key, others[7];
  for (int i = 0; i < 7; i++) others[i] = key;
  others[0].family = others[1].workload = others[2].target = "else";
  others[3].cores = others[4].l1_bytes = others[5].l2_bytes = others[6].l3_bytes = 1;
  assert_non_null(find(records, &key));
  for (int i = 0; i < 7; i++) assert_null(find(records, &others[i]));
  assert_null(find(NULL, &key));
}

/* A writer that was killed leaves half a line; the record of the next writer is complete nevertheless. */
static void half_a_line_spoils_no_other(void **state) {
  (void)state;
  append("a", "s");
  append_text("{\"format\":\"rnncc-sched");
  append("b", "s");
  ScheduleRecords *records = records_read(arena, path);
  assert_int_equal(records->count, 2);
  assert_string_equal(records->list[1].key.workload, "b");
}

static void read_all(void *unused) {
  (void)unused;
  ScheduleRecords *records = records_read(arena, path);
  fprintf(stderr, "%d records\n", records->count);
}

static void lines_that_are_no_records_are_skipped_with_one_warning(void **state) {
  (void)state;
  append("a", "s");
  append_text("nonsense\n[]\n{}\n\n  \n{\"format\":\"rnncc-schedule\",\"format\":\"rnncc-schedule\"}\n");
  append("b", "s");
  Outcome outcome = outcome_of(read_all, NULL);
  expect_outcome(&outcome, 0, "4 lines are not records and are skipped; line 2:", "2 records");
  const char *warning = strstr(outcome.messages, "warning");
  assert_non_null(warning);
  assert_null(strstr(warning + 1, "warning"));
}

static void a_file_that_is_not_there_is_an_error(void **state) {
  (void)state;
  unlink(path);
  Outcome outcome = outcome_of(read_all, NULL);
  expect_outcome(&outcome, EXIT_INVALID, "cannot read", NULL);
}

static void write_bytes(const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) stop(EXIT_ENVIRONMENT);
}

/* In a child process, because its many warnings are not wanted. */
static void read_with_each_bit_flipped(void *unused) {
  (void)unused;
  char bytes[4096];
  FILE *file = fopen(path, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  for (size_t at = 0; at < size; at++) {
    char flip = (char)(1 << at % 8);
    bytes[at] = (char)(bytes[at] ^ flip);
    write_bytes(bytes, size);
    int count = records_read(arena, path)->count;
    if (count < 2 || count > 4) stop(EXIT_MISMATCH);
    bytes[at] = (char)(bytes[at] ^ flip);
  }
}

/* If a line end is lost, two lines become one. */
static void a_flipped_bit_costs_at_most_the_lines_it_touches(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) append(i % 2 ? "odd" : "even", "input=ahead");
  Outcome outcome = outcome_of(read_with_each_bit_flipped, NULL);
  assert_int_equal(outcome.code, EXIT_OK);
}

enum { WRITERS = 16, EACH = 25 };

static const char *workload_of(int writer, int number) { return arena_format(arena, "w%dn%d", writer, number); }

static void only_records(void *argument, int line, const ScheduleRecord *record, const char *wrong) {
  (void)argument;
  if (!record) fail_msg("line %d: %s", line, wrong);
}

static void writers_at_the_same_time_lose_no_record(void **state) {
  (void)state;
  fflush(NULL);
  for (int w = 0; w < WRITERS; w++) {
    if (fork() != 0) continue;
    for (int i = 0; i < EACH; i++) append(workload_of(w, i), "s");
    _exit(0);
  }
  int status;
  for (int w = 0; w < WRITERS; w++) {
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
  }
  records_each_line(arena, path, only_records, NULL);
  ScheduleRecords *records = records_read(arena, path);
  assert_int_equal(records->count, WRITERS * EACH);
  for (int i = 0; i < WRITERS * EACH; i++) {
    ScheduleRecord wanted = record_of(workload_of(i / EACH, i % EACH), "");
    assert_non_null(find(records, &wanted.key));
  }
}

enum { APPENDED = 100 };

static _Noreturn void append_many(void) {
  for (int i = 0; i < APPENDED; i++) append(workload_of(0, i), "s");
  _exit(0);
}

static void read_beside_a_writer(void *unused) {
  (void)unused;
  int status;
  pid_t writer = fork();
  if (writer == 0) append_many();
  while (waitpid(writer, &status, WNOHANG) == 0) records_read(arena, path);
  if (status || records_read(arena, path)->count != APPENDED) stop(EXIT_MISMATCH);
}

static void a_reader_beside_a_writer_sees_records_alone(void **state) {
  (void)state;
  Outcome outcome = outcome_of(read_beside_a_writer, NULL);
  assert_int_equal(outcome.code, EXIT_OK);
  assert_string_equal(outcome.messages, "");
}

static void a_line_that_someone_may_be_writing_is_not_told(void **state) {
  (void)state;
  append("a", "s");
  append_text("{\"format\":\"rnncc-sched");
  Outcome outcome = outcome_of(read_all, NULL);
  assert_string_equal(outcome.messages, "1 records\n");
  append_text("ule\n");
  outcome = outcome_of(read_all, NULL);
  expect_outcome(&outcome, 0, "1 line is not a record and is skipped; line 2:", "1 records");
}

static void a_last_line_of_something_else_is_told(void **state) {
  (void)state;
  append_text("something else");
  Outcome outcome = outcome_of(read_all, NULL);
  expect_outcome(&outcome, 0, "1 line is not a record and is skipped; line 1:", "0 records");
}

/* A line of /proc/locks with an arrow is of one that waits; of this file, by its inode. */
static bool someone_waits_for(ino_t inode) {
  char line[256], ending[32];
  bool found = false;
  snprintf(ending, sizeof ending, ":%lu ", (unsigned long)inode);
  FILE *locks = fopen("/proc/locks", "r");
  assert_non_null(locks);
  while (!found && fgets(line, sizeof line, locks)) found = strstr(line, "-> FLOCK") && strstr(line, ending);
  fclose(locks);
  return found;
}

/* The holder of the lock may still take back what it wrote. */
static void a_writer_waits_for_the_lock(void **state) {
  (void)state;
  int held = open(path, O_RDONLY), status;
  assert_int_equal(flock(held, LOCK_EX), 0);
  fflush(NULL);
  pid_t writer = fork();
  if (writer == 0) {
    close(held);
    append("a", "s");
    _exit(0);
  }
  struct stat before;
  assert_int_equal(stat(path, &before), 0);
  while (!someone_waits_for(before.st_ino)) usleep(1000);
  assert_int_equal(stat(path, &before), 0);
  assert_int_equal(close(held), 0); /* the child has closed its own */
  assert_int_equal(waitpid(writer, &status, 0), writer);
  assert_int_equal(status, 0);
  assert_int_equal(before.st_size, 0);
  assert_int_equal(records_read(arena, path)->count, 1);
}

/* As `rnncc schedules merge` replaces it. */
static void a_writer_that_waited_appends_to_the_file_that_is_there_now(void **state) {
  (void)state;
  char *merged = arena_format(arena, "%s.merged", path);
  int held = records_lock(path), status;
  struct stat before;
  assert_int_equal(fcntl(held, F_GETFL) & O_ACCMODE, O_RDWR); /* else it locks nothing on NFS */
  assert_int_equal(fstat(held, &before), 0);
  fflush(NULL);
  pid_t writer = fork();
  if (writer == 0) {
    close(held);
    append("a", "s");
    _exit(0);
  }
  while (!someone_waits_for(before.st_ino)) usleep(1000);
  ScheduleRecord record = record_of("b", "s");
  records_append(arena, merged, &record);
  assert_int_equal(rename(merged, path), 0);
  assert_int_equal(close(held), 0);
  assert_int_equal(waitpid(writer, &status, 0), writer);
  assert_int_equal(status, 0);
  assert_int_equal(records_read(arena, path)->count, 2);
}

/* As on a full disk: half of the line fits. */
static void append_to_a_file_that_is_full(void *unused) {
  (void)unused;
  struct stat status;
  if (stat(path, &status) != 0) stop(EXIT_INVALID);
  struct rlimit limit = {(rlim_t)status.st_size + 100, (rlim_t)status.st_size + 100};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  append("b", "s");
}

static void a_record_that_does_not_fit_leaves_the_file_as_it_was(void **state) {
  (void)state;
  struct stat before, after;
  append("a", "s");
  assert_int_equal(stat(path, &before), 0);
  Outcome outcome = outcome_of(append_to_a_file_that_is_full, NULL);
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "cannot append a record: File too large", path);
  assert_int_equal(stat(path, &after), 0);
  assert_int_equal(after.st_size, before.st_size);
}

/* ---- checksums and characters ---- */

static void read_one(void *argument) {
  append_text(argument);
  fprintf(stderr, "%d records\n", records_read(arena, path)->count);
}

static void a_changed_line_is_not_a_record(void **state) {
  (void)state;
  ScheduleRecord record = record_of("a", "workers=1");
  const char *line = record_text(arena, &record);
  char *changed = arena_string(arena, line);
  strstr(changed, "workers=1")[8] = '3';
  Outcome outcome = outcome_of(read_one, changed);
  expect_outcome(&outcome, 0, "its checksum does not match", "0 records");
}

static void trials_are_not_found_as_the_best(void **state) {
  (void)state;
  static const char *const statuses[] = {"ok", "crashed", "hung", "wrong"};
  append("a", "first");
  for (int i = 0; i < 4; i++) {
    ScheduleRecord trial = record_of("a", "later");
    trial.status = statuses[i];
    records_append(arena, path, &trial);
  }
  ScheduleRecords *records = records_read(arena, path);
  ScheduleRecord wanted = record_of("a", "");
  assert_int_equal(records->count, 5);
  assert_string_equal(find(records, &wanted.key)->schedule, "first");
  for (int i = 0; i < 4; i++) assert_string_equal(records->list[1 + i].status, statuses[i]);
}

static const ScheduleRecord *use(ScheduleRecords *records, const char *workload) {
  RecordKey key = record_of(workload, "").key;
  return records_use(records, &key, kernels_of, NULL);
}

static void an_earlier_record_is_used_where_later_ones_are_stale_or_none(void **state) {
  (void)state;
  append("a", "good");
  append("a", "changed");
  append("a", "none");
  ScheduleRecords *records = records_read(arena, path);
  assert_string_equal(use(records, "a")->schedule, "good");
}

static void a_record_without_kernels_is_of_whatever_version(void **state) {
  (void)state;
  ScheduleRecord record = record_of("a", "changed");
  record.kernels = NULL;
  records_append(arena, path, &record);
  assert_string_equal(use(records_read(arena, path), "a")->schedule, "changed");
}

static void use_all(void *unused) {
  (void)unused;
  ScheduleRecords *records = records_read(arena, path);
  static const char *const workloads[] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; i++)
    if (use(records, workloads[i])) stop(EXIT_MISMATCH);
}

static void unused_records_are_reported_once_for_each_file_and_reason(void **state) {
  (void)state;
  append("a", "changed");
  append("b", "changed");
  append("c", "none");
  append("d", "none");
  Outcome outcome = outcome_of(use_all, NULL);
  expect_outcome(&outcome, 0, "the record of a is of another version of its kernels", "of c is not used: it is none");
  const char *second = strstr(strstr(outcome.messages, "warning") + 1, "warning");
  assert_non_null(second);
  assert_null(strstr(second + 1, "warning"));
}

static void a_line_that_needs_escapes_is_not_a_record(void **state) {
  (void)state;
  const char *line = record_text(arena, &(ScheduleRecord){.key = record_of("a", "").key, .schedule = "\\u001b[31m"});
  Outcome outcome = outcome_of(read_one, arena_string(arena, line));
  expect_outcome(&outcome, 0, "expected printable ASCII", "0 records");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_appended_record_is_found_and_of_equal_keys_the_later, setup_file,
                                      teardown_file),
      cmocka_unit_test_setup_teardown(a_record_whose_key_differs_anywhere_is_not_found, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(half_a_line_spoils_no_other, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(an_earlier_record_is_used_where_later_ones_are_stale_or_none, setup_file,
                                      teardown_file),
      cmocka_unit_test_setup_teardown(a_record_without_kernels_is_of_whatever_version, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(unused_records_are_reported_once_for_each_file_and_reason, setup_file,
                                      teardown_file),
      cmocka_unit_test_setup_teardown(lines_that_are_no_records_are_skipped_with_one_warning, setup_file,
                                      teardown_file),
      cmocka_unit_test_setup_teardown(a_file_that_is_not_there_is_an_error, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_flipped_bit_costs_at_most_the_lines_it_touches, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(writers_at_the_same_time_lose_no_record, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_reader_beside_a_writer_sees_records_alone, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_line_that_someone_may_be_writing_is_not_told, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_last_line_of_something_else_is_told, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_writer_waits_for_the_lock, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_writer_that_waited_appends_to_the_file_that_is_there_now, setup_file,
                                      teardown_file),
      cmocka_unit_test_setup_teardown(a_record_that_does_not_fit_leaves_the_file_as_it_was, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_changed_line_is_not_a_record, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(trials_are_not_found_as_the_best, setup_file, teardown_file),
      cmocka_unit_test_setup_teardown(a_line_that_needs_escapes_is_not_a_record, setup_file, teardown_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
