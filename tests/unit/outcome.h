/* SPDX-License-Identifier: MIT */
/* Runs a function that may stop the compiler in a child process, and reports how it ended. */
#ifndef RNNCC_OUTCOME_H
#define RNNCC_OUTCOME_H

#include <stdbool.h>

typedef struct Outcome {
  int code;            /* exit code; -1: a signal */
  char messages[8192]; /* the beginning of stderr */
} Outcome;

/* The child ends with exit code 0 if `body` returns. */
Outcome outcome_of(void (*body)(void *), void *argument);

/* Fails the test, showing the messages, unless the code is this and the messages contain each of the texts; NULL for
 * none. */
void expect_outcome(const Outcome *outcome, int code, const char *text, const char *other_text);

#endif
