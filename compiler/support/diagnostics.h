/* SPDX-License-Identifier: MIT */
/*
 * The compiler fails in two ways. error_at() is for the user's input: it reports where, what was expected and what was
 * found, and returns, so that all errors of one kind are reported at once; stop_on_errors() ends the compilation if
 * there were any. bug() is for our own mistakes.
 *
 * Messages go to stderr as `file: where: error: message`, control characters escaped. Leaving through stop(), files
 * registered with files.h are removed first.
 */
#ifndef RNNCC_DIAGNOSTICS_H
#define RNNCC_DIAGNOSTICS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ExitCode {
  EXIT_OK = 0,
  EXIT_MISMATCH = 1,    /* rnnrun verify */
  EXIT_INVALID = 2,     /* usage or invalid input */
  EXIT_UNSUPPORTED = 3, /* valid, but not supported */
  EXIT_LIMIT = 4,       /* resource limit */
  EXIT_ENVIRONMENT = 5, /* toolchain, file system */
} ExitCode;

/* A place in the user's input. Any part may be absent. */
typedef struct Location {
  const char *file; /* as the user gave it; NULL: the command line */
  const char *path; /* JSON path ("nodes[3].attributes.axis") or node name; NULL: the whole file */
  long long byte;   /* offset in the file, -1 if unknown */
} Location;

#define LOCATION_FILE(name) ((Location){.file = (name), .path = NULL, .byte = -1})

/* Of very many errors the first are shown. */
void error_at(Location where, ExitCode code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void warn_at(Location where, const char *format, ...) __attribute__((format(printf, 2, 3)));
void note_at(Location where, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* error_at() and stop() in one. */
_Noreturn void fatal_at(Location where, ExitCode code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Ends the compilation, also inside first_error_of(): it is not an error of the input. */
_Noreturn void out_of_memory(void);

/* Ends the compilation if there were errors: with their common code. If they differ, with EXIT_INVALID if one is that,
 * else with EXIT_UNSUPPORTED. */
void stop_on_errors(void);
int error_count(void); /* so far */
/* Resets the count of errors, for fuzzers, which compile more than once. */
void forget_errors(void);

/* Runs `body`, whose first error ends it and is neither reported nor counted. Returns that message, with the path of
 * what is wrong in a file before it, valid until the next call; NULL: no error. Calls must not be nested. */
const char *first_error_of(void (*body)(void *), void *argument);

/* Runs the registered clean-ups and exits: not with EXIT_OK if stdout has not taken all that was written. */
_Noreturn void stop(ExitCode code);
void at_stop(void (*cleanup)(void *), void *argument);
void clean_up(void); /* the clean-ups of stop() */

/* Our own mistake: an invariant does not hold. Exits with EXIT_ENVIRONMENT after the clean-ups, never by a signal. */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Errors and warnings are of that network of several, until the next call; NULL: of none. It is named where the file is
 * not called like it. Returns the one before. */
const char *diagnostics_network(const char *name);

/* Each line of stderr is written at once: other processes may write to the same file. */
void diagnostics_by_line(void);

/* -1 auto (a terminal and no NO_COLOR), 0 never, 1 always. */
void diagnostics_color(int when);

#endif
