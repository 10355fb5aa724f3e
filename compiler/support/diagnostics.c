/* SPDX-License-Identifier: MIT */
#include "support/diagnostics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/interrupt.h"

enum { MAX_CLEANUPS = 16, MESSAGE_BYTES = 4096, PATH_BYTES = 1024, LINE_BYTES = 1 << 16, ERRORS_SHOWN = 100 };

static struct {
  void (*cleanup)(void *);
  void *argument;
} cleanups[MAX_CLEANUPS];
static int n_cleanups;
static int n_errors;
static ExitCode error_code; /* what all errors so far share */
static int color_when = -1;
static const char *network; /* that errors and warnings are of; NULL: none */

/* Set while first_error_of() runs. */
static jmp_buf *trial;
static char trial_message[MESSAGE_BYTES];

void diagnostics_color(int when) { color_when = when; }

const char *diagnostics_network(const char *name) {
  const char *before = network;
  network = name;
  return before;
}

void diagnostics_by_line(void) {
  static char line[LINE_BYTES];
  setvbuf(stderr, line, _IOLBF, sizeof line);
}

static bool colored(void) {
  if (color_when >= 0) return color_when;
  return isatty(STDERR_FILENO) && !getenv("NO_COLOR");
}

/* Control characters would let a name in a model file write to the user's terminal. */
static void put_escaped(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c < 0x20 || *c == 0x7f)
      fprintf(stderr, "\\x%02x", *c);
    else
      fputc(*c, stderr);
  }
}

/* In a trial the first error ends it. Whoever made the trial knows the file, but not what of it is wrong. */
static void end_trial(Location where, const char *format, va_list arguments) {
  if (!trial) return;
  int length = where.path ? snprintf(trial_message, sizeof trial_message, "%.*s: ", PATH_BYTES, where.path) : 0;
  vsnprintf(trial_message + length, sizeof trial_message - (size_t)length, format, arguments);
  longjmp(*trial, 1);
}

/* "models/encoder.onnx" is called like the network encoder. */
static bool file_is_called(const char *file, const char *name) {
  const char *slash = file ? strrchr(file, '/') : NULL, *last = slash ? slash + 1 : file;
  size_t length = strlen(name);
  return file && !strncmp(last, name, length) && (last[length] == '.' || !last[length]);
}

/* `of`: the network that it is of, NULL: none. */
static void put(Location where, const char *of, const char *color, const char *kind, const char *format,
                va_list arguments) {
  char message[MESSAGE_BYTES];
  vsnprintf(message, sizeof message, format, arguments);
  put_escaped(where.file ? where.file : "rnncc");
  fputs(": ", stderr);
  if (of && !file_is_called(where.file, of)) fprintf(stderr, "network %s: ", of);
  if (where.path) {
    put_escaped(where.path);
    fputs(": ", stderr);
  }
  if (where.byte >= 0) fprintf(stderr, "byte %lld: ", where.byte);
  if (colored())
    fprintf(stderr, "\033[%sm%s:\033[0m ", color, kind);
  else
    fprintf(stderr, "%s: ", kind);
  put_escaped(message);
  fputc('\n', stderr);
}

/* FNV-1a. */
static uint64_t hashed(uint64_t hash, const char *text) {
  for (; text && *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u; /* where it ends */
}

/* What the compilations of several networks, or for several targets, would all say is said once. */
static bool said_before(Location where, const char *of, const char *format, va_list arguments) {
  enum { MOST = 512 };
  static uint64_t hashes[MOST];
  static int n_hashes;
  char message[MESSAGE_BYTES];
  va_list again;
  va_copy(again, arguments);
  vsnprintf(message, sizeof message, format, again);
  va_end(again);
  uint64_t hash = hashed(hashed(hashed(hashed(0xcbf29ce484222325u, where.file), where.path), of), message);
  hash += (uint64_t)where.byte;
  for (int i = 0; i < n_hashes; i++)
    if (hashes[i] == hash) return true;
  if (n_hashes < MOST) hashes[n_hashes++] = hash;
  return false;
}

static void put_once(Location where, const char *of, const char *color, const char *kind, const char *format,
                     va_list arguments) {
  if (!said_before(where, of, format, arguments)) put(where, of, color, kind, format, arguments);
}

static ExitCode code_of_both(ExitCode a, ExitCode b) {
  if (a == b) return a;
  return a == EXIT_INVALID || b == EXIT_INVALID ? EXIT_INVALID : EXIT_UNSUPPORTED;
}

static void report(Location where, ExitCode code, bool show, const char *format, va_list arguments) {
  end_trial(where, format, arguments);
  if (show) put_once(where, network, "1;31", "error", format, arguments);
  error_code = n_errors == 0 ? code : code_of_both(error_code, code);
  n_errors++;
}

void error_at(Location where, ExitCode code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report(where, code, n_errors < ERRORS_SHOWN, format, arguments);
  va_end(arguments);
}

void warn_at(Location where, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_once(where, network, "1;35", "warning", format, arguments);
  va_end(arguments);
}

void note_at(Location where, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_once(where, NULL, "1;36", "note", format, arguments);
  va_end(arguments);
}

void fatal_at(Location where, ExitCode code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report(where, code, true, format, arguments);
  va_end(arguments);
  stop(error_code);
}

void out_of_memory(void) {
  trial = NULL;
  fatal_at(LOCATION_FILE(NULL), EXIT_LIMIT, "out of memory: the system has no more to give");
}

const char *first_error_of(void (*body)(void *), void *argument) {
  jmp_buf here;
  const int before = n_errors; /* told of something else: stop_on_errors() in the body is not about them */
  n_errors = 0;
  trial = &here;
  bool failed = setjmp(here) != 0;
  if (!failed) body(argument);
  trial = NULL;
  n_errors = before;
  return failed ? trial_message : NULL;
}

void forget_errors(void) { n_errors = 0; }

int error_count(void) { return n_errors; }

void stop_on_errors(void) {
  if (n_errors > ERRORS_SHOWN)
    note_at(LOCATION_FILE(NULL), "%d errors; the first %d are shown", n_errors, ERRORS_SHOWN);
  if (n_errors) stop(error_code);
}

void at_stop(void (*cleanup)(void *), void *argument) {
  if (n_cleanups == MAX_CLEANUPS) bug("more than %d clean-ups", MAX_CLEANUPS);
  cleanups[n_cleanups].cleanup = cleanup;
  cleanups[n_cleanups++].argument = argument;
}

void clean_up(void) {
  while (n_cleanups > 0) {
    n_cleanups--;
    cleanups[n_cleanups].cleanup(cleanups[n_cleanups].argument);
  }
}

/* A full disk; of a reader that is gone there is a signal. */
static bool stdout_written(void) { return fflush(stdout) == 0 && !ferror(stdout); }

void stop(ExitCode code) {
  bool written = stdout_written();
  interrupt_check();
  if (code == EXIT_OK && !written) {
    error_at(LOCATION_FILE("stdout"), EXIT_ENVIRONMENT, "cannot write all of the output");
    code = EXIT_ENVIRONMENT;
  }
  clean_up();
  exit(code);
}

void bug_at(const char *file, int line, const char *format, ...) {
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  fprintf(stderr, "rnncc: internal error: %s:%d: ", file, line);
  put_escaped(message);
  fputs("\nrnncc: this is a mistake of the compiler; please report it with the model\n", stderr);
  stop(EXIT_ENVIRONMENT);
}
