/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "outcome.h"
#include "support/diagnostics.h"

static _Noreturn void run_child(void (*body)(void *), void *argument, int write_end) {
  dup2(write_end, STDERR_FILENO);
  diagnostics_color(0);
  body(argument);
  exit(0);
}

Outcome outcome_of(void (*body)(void *), void *argument) {
  Outcome outcome = {.code = -1};
  int ends[2], status;
  fflush(NULL);
  assert_return_code(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) run_child(body, argument, ends[1]);
  close(ends[1]);
  size_t length = 0;
  char rest[4096];
  for (ssize_t got = 1; got > 0;) {
    size_t room = sizeof outcome.messages - 1 - length;
    got = room ? read(ends[0], outcome.messages + length, room) : read(ends[0], rest, sizeof rest);
    if (got > 0 && room) length += (size_t)got;
  }
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

void expect_outcome(const Outcome *outcome, int code, const char *text, const char *other_text) {
  if (outcome->code == code && (!text || strstr(outcome->messages, text)) &&
      (!other_text || strstr(outcome->messages, other_text)))
    return;
  fail_msg("expected code %d, \"%s\" and \"%s\"; got code %d and:\n%s", code, text ? text : "",
           other_text ? other_text : "", outcome->code, outcome->messages);
}
