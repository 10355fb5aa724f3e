/* SPDX-License-Identifier: MIT */
/* Nothing in a request is trusted: memory is allocated as bytes arrive, not by the lengths that it announces. */
#include "request.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

static const char FIRST_LINE[] = "rnncc-measure 1", END_OF_LINES[] = "end", LAST_LINE[] = "rnncc-measure-end\n";

enum { LINE_BYTES = REQUEST_TEXT, PIECE = 1 << 16, MAX_BYTES = 1 << 30, MAX_RUNS = 1 << 16, MAX_SECONDS = 3600 };

typedef enum ValueKind { INTEGER, NUMBER, TEXT, INPUT } ValueKind;

static const struct {
  const char *key;
  ValueKind kind;
  size_t field;
  double least, most;
} KEYS[] = {
    {"evict", INTEGER, offsetof(Request, evict), 0, MAX_BYTES},
    {"give_up_us", NUMBER, offsetof(Request, give_up_us), 0, 1e12},
    {"input", INPUT, offsetof(Request, inputs), 0, MAX_BYTES},
    {"least_runs", INTEGER, offsetof(Request, least_runs), 1, MAX_RUNS},
    {"limit", NUMBER, offsetof(Request, limit), 0.01, MAX_SECONDS},
    {"module", INTEGER, offsetof(Request, module_bytes), 1, MAX_BYTES},
    {"node", TEXT, offsetof(Request, node), 0, 0},
    {"outputs", INTEGER, offsetof(Request, outputs), 0, 1},
    {"precision", NUMBER, offsetof(Request, precision), 0, 1},
    {"runs", INTEGER, offsetof(Request, runs), 1, MAX_RUNS},
    {"seconds", NUMBER, offsetof(Request, seconds), 0, MAX_SECONDS},
    {"seed", INTEGER, offsetof(Request, seed), 0, INT32_MAX},
    {"threads", INTEGER, offsetof(Request, threads), 0, 1024},
};

enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS };

/* 0, for the caller to return. */
__attribute__((format(printf, 2, 3))) static int refuse(Request *request, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(request->wrong, sizeof request->wrong, format, arguments);
  va_end(arguments);
  return 0;
}

/* ---- lines ---- */

/* A line without its end, which must be there; no NUL within. */
static int read_line(FILE *stream, Request *request, char line[LINE_BYTES]) {
  size_t length = 0;
  for (int c; (c = getc(stream)) != '\n'; line[length++] = (char)c) {
    if (c == EOF) return refuse(request, "it ends within its lines");
    if (c == '\0' || length == LINE_BYTES - 1) return refuse(request, "a line is too long, or no text");
  }
  line[length] = '\0';
  return 1;
}

static int find_key(const char *key) {
  for (int i = 0; i < KEY_COUNT; i++)
    if (!strcmp(KEYS[i].key, key)) return i;
  return -1;
}

static int is_number(const char *text, ValueKind kind, double *value) {
  int64_t integer;
  if (kind != NUMBER) {
    if (!parse_integer(text, &integer)) return 0;
    *value = (double)integer;
    return 1;
  }
  char *end;
  *value = strtod(text, &end);
  return end != text && !*end && isfinite(*value);
}

static int set_value(Request *request, int key, const char *text) {
  void *field = (char *)request + KEYS[key].field;
  double value;
  if (KEYS[key].kind == TEXT) {
    strcpy(field, text); /* a line's length at most */
    return 1;
  }
  if (!is_number(text, KEYS[key].kind, &value) || value < KEYS[key].least || value > KEYS[key].most)
    return refuse(request, "%s %s: expected a%s number from %g to %g", KEYS[key].key, text,
                  KEYS[key].kind == NUMBER ? "" : " whole", KEYS[key].least, KEYS[key].most);
  if (KEYS[key].kind == NUMBER) *(double *)field = value;
  if (KEYS[key].kind == INTEGER) *(int64_t *)field = (int64_t)value;
  if (KEYS[key].kind != INPUT) return 1;
  if (request->n_inputs == REQUEST_INPUTS) return refuse(request, "more than %d inputs", REQUEST_INPUTS);
  request->inputs[request->n_inputs++].bytes = (size_t)value;
  return 1;
}

static int read_keys(FILE *stream, Request *request) {
  char line[LINE_BYTES];
  int given[KEY_COUNT] = {0};
  for (;;) {
    if (!read_line(stream, request, line)) return 0;
    if (!strcmp(line, END_OF_LINES)) break;
    char *space = strchr(line, ' ');
    if (space) *space = '\0';
    int key = find_key(line);
    if (key < 0 || !space) return refuse(request, "expected KEY VALUE of a request, found `%s`", line);
    if (given[key]++ && KEYS[key].kind != INPUT) return refuse(request, "%s is given twice", line);
    if (!set_value(request, key, space + 1)) return 0;
  }
  return request->module_bytes ? 1 : refuse(request, "it has no module");
}

/* ---- bytes ---- */

static int write_all(int file, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(file, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return 0;
    bytes += written, count -= (size_t)written;
  }
  return 1;
}

static int read_module(FILE *stream, Request *request) {
  char piece[PIECE];
  request->module = memfd_create("module", MFD_CLOEXEC);
  if (request->module < 0) return refuse(request, "no file in memory can be made: %s", strerror(errno));
  for (size_t left = (size_t)request->module_bytes, count; left > 0; left -= count) {
    count = fread(piece, 1, left < PIECE ? left : PIECE, stream);
    if (count == 0) return refuse(request, "it ends within the module");
    if (!write_all(request->module, piece, count)) return refuse(request, "the module: %s", strerror(errno));
  }
  return 1;
}

static int read_input(FILE *stream, Request *request, RequestInput *input) {
  size_t got = 0, capacity = 0;
  while (got < input->bytes) {
    if (got == capacity) {
      capacity = 2 * capacity + PIECE < input->bytes ? 2 * capacity + PIECE : input->bytes;
      void *grown = realloc(input->data, capacity);
      if (!grown) return refuse(request, "out of memory");
      input->data = grown;
    }
    size_t count = fread((char *)input->data + got, 1, capacity - got, stream);
    if (count == 0) return refuse(request, "it ends within the inputs");
    got += count;
  }
  return 1;
}

static int read_last_line(FILE *stream, Request *request) {
  char line[sizeof LAST_LINE] = "";
  size_t count = fread(line, 1, sizeof LAST_LINE - 1, stream);
  return count && strcmp(line, LAST_LINE) == 0 ? 1 : refuse(request, "the last line is missing: the lengths are wrong");
}

int request_read(FILE *stream, Request *request) {
  char line[LINE_BYTES];
  *request = (Request){.module = -1, .least_runs = 5, .runs = 200, .seconds = 1, .limit = 60};
  if (!read_line(stream, request, line)) return 0;
  if (strcmp(line, FIRST_LINE) != 0) return refuse(request, "expected `%s`, found `%s`", FIRST_LINE, line);
  if (!read_keys(stream, request) || !read_module(stream, request)) return 0;
  for (int i = 0; i < request->n_inputs; i++)
    if (!read_input(stream, request, &request->inputs[i])) return 0;
  return read_last_line(stream, request);
}

void request_free(Request *request) {
  if (request->module >= 0) close(request->module);
  for (int i = 0; i < request->n_inputs; i++) free(request->inputs[i].data);
}
