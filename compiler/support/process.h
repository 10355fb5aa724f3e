/* SPDX-License-Identifier: MIT */
/*
 * Running other programs: an argument vector, never a shell; a deadline; the output kept for the message. A function
 * can run in the same way, in a process of its own: it may fail, crash or hang without harm.
 */
#ifndef RNNCC_PROCESS_H
#define RNNCC_PROCESS_H

#include "support/arena.h"
#include <stdbool.h>
#include <sys/types.h>

typedef enum ProcessOutcome {
  PROCESS_OK,
  PROCESS_FAILED,
  PROCESS_NOT_FOUND,
  PROCESS_NOT_STARTED, /* `output` says why */
  PROCESS_TIMEOUT
} ProcessOutcome;

typedef struct Process {
  const char *const *argv;      /* NULL-terminated; argv[0] is looked up in PATH. NULL: `body` runs instead, */
  void (*body)(void *argument); /* on a copy of this process's memory; it may stop() */
  void *argument;
  const char *folder; /* working folder */
  bool confined;      /* of argv: it writes only there, and opens no connection; see sandbox.h */
  /* set by process_run_all */
  ProcessOutcome outcome;
  int status;   /* exit status, or 128 + signal */
  char *output; /* stdout and stderr together, at most 64 KiB */
} Process;

/* Runs all, at most `jobs` at a time, each for at most `seconds`. What runs over is killed with its children; all are
 * reaped. True if every outcome is PROCESS_OK. */
bool process_run_all(Arena *arena, Process *processes, int count, int jobs, double seconds);

/* Starts a program with these descriptors as its stdin, stdout and stderr, in a process group of its own. What
 * posix_spawn() returns. */
int process_spawn(const char *const *argv, const char *folder, int input, int output, int error, pid_t *pid);

#endif
