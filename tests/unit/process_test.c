/* SPDX-License-Identifier: MIT */
/* Running other programs: output and status arrive, a missing program is recognised, nothing outlives its deadline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "arena_fixture.h"
#include "outcome.h"
#include "support/files.h"
#include "support/process.h"

static Process run_one(const char *const *argv, double seconds) {
  Process process = {.argv = argv, .folder = "/"};
  process_run_all(arena, &process, 1, 1, seconds);
  return process;
}

static void output_and_status_arrive(void **state) {
  (void)state;
  const char *const argv[] = {"sh", "-c", "pwd; echo oops >&2; exit 3", NULL};
  Process process = run_one(argv, 10);
  assert_int_equal(process.outcome, PROCESS_FAILED);
  assert_int_equal(process.status, 3);
  assert_string_equal(process.output, "/\noops\n");
}

static void a_missing_program_is_recognised(void **state) {
  (void)state;
  const char *const argv[] = {"no-such-program-anywhere", NULL};
  assert_int_equal(run_one(argv, 10).outcome, PROCESS_NOT_FOUND);
}

static void arguments_reach_the_program_as_they_are(void **state) {
  (void)state;
  const char *const argv[] = {"printf", "%s", "$(id); `id` \"'\n", NULL};
  Process process = run_one(argv, 10);
  assert_int_equal(process.outcome, PROCESS_OK);
  assert_string_equal(process.output, "$(id); `id` \"'\n");
}

/* The process has ended; perhaps its new parent has not reaped it yet. */
static bool dead(pid_t pid) {
  char path[64], line[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (!file) return true;
  bool zombie = fgets(line, sizeof line, file) && strstr(line, ") Z");
  fclose(file);
  return zombie;
}

/* The child writes the pid of its own child, so that the test can check that both are gone. */
static void a_program_past_its_deadline_is_killed_with_its_children(void **state) {
  (void)state;
  const char *const argv[] = {"sh", "-c", "sleep infinity & echo $!; wait", NULL};
  Process process = run_one(argv, 0.3);
  assert_int_equal(process.outcome, PROCESS_TIMEOUT);
  pid_t grandchild = (pid_t)atoi(process.output);
  assert_true(grandchild > 0);
  while (!dead(grandchild)) usleep(10000);
}

static void a_program_that_closes_its_output_and_runs_on_is_killed_at_its_deadline(void **state) {
  (void)state;
  const char *const argv[] = {"sh", "-c", "echo $$; exec >&- 2>&- sleep infinity", NULL};
  Process process = run_one(argv, 0.3);
  assert_int_equal(process.outcome, PROCESS_TIMEOUT);
  assert_true(dead((pid_t)atoi(process.output)));
}

static void the_status_comes_after_the_end_of_the_output(void **state) {
  (void)state;
  const char *const argv[] = {"sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 7", NULL};
  Process process = run_one(argv, 10);
  assert_int_equal(process.outcome, PROCESS_FAILED);
  assert_int_equal(process.status, 7);
}

static void all_run_although_few_at_a_time(void **state) {
  (void)state;
  const char *const argv[] = {"echo", "x", NULL};
  Process many[9];
  for (int i = 0; i < 9; i++) many[i] = (Process){.argv = argv, .folder = "/"};
  assert_true(process_run_all(arena, many, 9, 2, 10));
  for (int i = 0; i < 9; i++) assert_string_equal(many[i].output, "x\n");
}

/* A program that writes its pid to a file and sleeps, run by a body. */
typedef struct Sleep {
  const char *pid_file;
  double seconds;
} Sleep;

static void run_sleep(void *argument) {
  const Sleep *sleep = argument;
  const char *const argv[] = {"sh", "-c", "echo $$ >$0; exec sleep 100", sleep->pid_file, NULL};
  Process process = {.argv = argv, .folder = "/"};
  process_run_all(arena, &process, 1, 1, sleep->seconds);
  printf("%d", (int)process.outcome);
}

static void say_and_stop(void *code) {
  printf("said");
  stop(*(ExitCode *)code);
}

static void a_function_runs_in_a_process_of_its_own(void **state) {
  (void)state;
  ExitCode codes[] = {EXIT_OK, EXIT_LIMIT};
  Process processes[2];
  const char *mine = temporary_directory(arena);
  for (int i = 0; i < 2; i++) processes[i] = (Process){.body = say_and_stop, .argument = &codes[i], .folder = "/"};
  assert_false(process_run_all(arena, processes, 2, 2, 10));
  assert_int_equal(processes[0].outcome, PROCESS_OK);
  assert_int_equal(processes[1].status, EXIT_LIMIT);
  assert_string_equal(processes[1].output, "said");
  assert_int_equal(access(mine, F_OK), 0); /* it stopped, and removed nothing of its parent's */
  temporary_remove(mine);
}

/* Else it does not return. */
static void wait_until_the_program_is_dead(const Sleep *sleep) {
  FileBytes bytes = file_read(arena, sleep->pid_file, 16, LOCATION_FILE(sleep->pid_file));
  pid_t pid = (pid_t)atoi((const char *)bytes.data);
  assert_true(pid > 0);
  while (!dead(pid)) usleep(10000);
}

/* By this process's deadline for the function, and by the function's deadline for the program. */
static void a_function_is_killed_with_the_programs_that_it_runs(void **state) {
  (void)state;
  const char *folder = temporary_directory(arena);
  Sleep sleep = {.pid_file = arena_format(arena, "%s/pid", folder), .seconds = 50};
  Process process = {.body = run_sleep, .argument = &sleep, .folder = "/"};
  assert_false(process_run_all(arena, &process, 1, 1, 0.5));
  assert_int_equal(process.outcome, PROCESS_TIMEOUT);
  wait_until_the_program_is_dead(&sleep);
  sleep.seconds = 0.3;
  assert_true(process_run_all(arena, &process, 1, 1, 20));
  assert_int_equal(atoi(process.output), PROCESS_TIMEOUT);
  wait_until_the_program_is_dead(&sleep);
  temporary_remove(folder);
}

static void a_function_in_a_folder_that_is_not_there_says_so(void **state) {
  (void)state;
  ExitCode code = EXIT_OK;
  Process process = {.body = say_and_stop, .argument = &code, .folder = "/no such folder"};
  assert_false(process_run_all(arena, &process, 1, 1, 10));
  assert_int_equal(process.status, EXIT_ENVIRONMENT);
  assert_non_null(strstr(process.output, "/no such folder: error: cannot work there: No such file or directory"));
}

static void run_without_descriptors(void *unused) {
  (void)unused;
  const char *const argv[] = {"true", NULL};
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
  run_one(argv, 10);
}

/* The search for leaks opens files. */
static void without_descriptors_the_reason_is_told(void **state) {
  (void)state;
  if (SANITIZED) return;
  Outcome outcome = outcome_of(run_without_descriptors, NULL);
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "cannot make a pipe: Too many open files", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(output_and_status_arrive),
      cmocka_unit_test(a_missing_program_is_recognised),
      cmocka_unit_test(arguments_reach_the_program_as_they_are),
      cmocka_unit_test(a_program_past_its_deadline_is_killed_with_its_children),
      cmocka_unit_test(a_program_that_closes_its_output_and_runs_on_is_killed_at_its_deadline),
      cmocka_unit_test(the_status_comes_after_the_end_of_the_output),
      cmocka_unit_test(all_run_although_few_at_a_time),
      cmocka_unit_test(a_function_runs_in_a_process_of_its_own),
      cmocka_unit_test(a_function_is_killed_with_the_programs_that_it_runs),
      cmocka_unit_test(a_function_in_a_folder_that_is_not_there_says_so),
      cmocka_unit_test(without_descriptors_the_reason_is_told),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
