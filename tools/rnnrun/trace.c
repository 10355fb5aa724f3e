/* SPDX-License-Identifier: MIT */
/*
 * The Trace Event Format (Google, Trace Event Format, 2016): an object whose traceEvents are "complete" events, "X", in
 * microseconds, and metadata, "M": names of the process and of its threads, which are the workers. A node's event has
 * those of its kernels within it. Names come from the model file: they are escaped as JSON strings.
 */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

typedef struct Writer {
  FILE *file;
  const Profile *profile;
  uint64_t first_ns; /* the beginning of the first span */
} Writer;

/* ---- events ---- */

static void begin_event(FILE *file, const char *phase, int worker, const char *name) {
  fprintf(file, "{\"ph\": \"%s\", \"pid\": 1, \"tid\": %d, \"name\": ", phase, worker);
  write_json_string(file, name);
}

static void write_name(FILE *file, const char *event, int worker, const char *name) {
  begin_event(file, "M", worker, event);
  fputs(", \"args\": {\"name\": ", file);
  write_json_string(file, name);
  fputs("}}", file);
}

static void write_worker(FILE *file, int worker) {
  char name[64];
  snprintf(name, sizeof name, worker ? "worker %d" : "worker %d (the caller)", worker);
  fputs(",\n", file);
  write_name(file, "thread_name", worker, name);
  fputs(",\n", file);
  begin_event(file, "M", worker, "thread_sort_index");
  fprintf(file, ", \"args\": {\"sort_index\": %d}}", worker);
}

static void write_times(FILE *file, const char *category, uint64_t begin_ns, uint64_t end_ns) {
  fputs(", \"cat\": ", file);
  write_json_string(file, category);
  fprintf(file, ", \"ts\": %.3f, \"dur\": %.3f", (double)begin_ns * 1e-3, (double)(end_ns - begin_ns) * 1e-3);
}

/* A kernel's rates are those of all workers in the whole run. */
static void write_kernel(FILE *file, const rnncc_profile_entry *entry, int worker, uint64_t begin_ns, uint64_t end_ns) {
  double per_ns = entry->nanoseconds ? 1 / (double)entry->nanoseconds : 0;
  fputs(",\n", file);
  begin_event(file, "X", worker, entry->kernel);
  write_times(file, "kernel", begin_ns, end_ns);
  fprintf(file, ", \"args\": {\"GFLOP/s\": %.3f, \"GB/s\": %.3f, \"node\": ", entry->flops_done * per_ns,
          entry->bytes_done * per_ns);
  write_json_string(file, entry->node);
  fputs("}}", file);
}

static void write_other(FILE *file, const char *name, const char *category, int worker, uint64_t begin_ns,
                        uint64_t end_ns) {
  fputs(",\n", file);
  begin_event(file, "X", worker, name);
  write_times(file, category, begin_ns, end_ns);
  fputs("}", file);
}

/* ---- a worker's line ---- */

static const char *node_of(const Writer *w, const rnncc_span *span) {
  return span->entry < 0 ? NULL : w->profile->fastest[span->entry].node;
}

static bool of_one_node(const Writer *w, const rnncc_span *a, const rnncc_span *b) {
  const char *node = node_of(w, a), *other = node_of(w, b);
  return node && other && !strcmp(node, other);
}

/* Kernels of one node, with nothing between them. Returns how many. */
static size_t write_node(const Writer *w, int worker, const rnncc_span *spans, size_t count) {
  size_t n = 1;
  while (n < count && of_one_node(w, &spans[0], &spans[n])) n++;
  write_other(w->file, node_of(w, spans), "node", worker, spans[0].begin - w->first_ns, spans[n - 1].end - w->first_ns);
  for (size_t i = 0; i < n; i++)
    write_kernel(w->file, &w->profile->fastest[spans[i].entry], worker, spans[i].begin - w->first_ns,
                 spans[i].end - w->first_ns);
  return n;
}

static void write_line(const Writer *w, int worker) {
  size_t count = profile_span_count(w->profile, worker);
  const rnncc_span *spans = profile_spans(w->profile, worker);
  write_worker(w->file, worker);
  for (size_t i = 0; i < count;) {
    if (spans[i].entry >= 0) {
      i += write_node(w, worker, &spans[i], count - i);
      continue;
    }
    write_other(w->file, "waits", "barrier", worker, spans[i].begin - w->first_ns, spans[i].end - w->first_ns);
    i++;
  }
}

/* An older module does not say what each worker does. */
static void write_end_to_end(const Writer *w) {
  uint64_t begin = 0;
  write_worker(w->file, 0);
  for (size_t i = 0; i < w->profile->count; i++) {
    const rnncc_profile_entry *entry = &w->profile->fastest[i];
    write_other(w->file, entry->node, "node", 0, begin, begin + entry->nanoseconds);
    write_kernel(w->file, entry, 0, begin, begin + entry->nanoseconds);
    begin += entry->nanoseconds;
  }
}

void write_trace(const char *path, const char *model, const Profile *profile) {
  Writer w = {fopen(path, "w"), profile, profile_begins(profile)};
  if (!w.file) fail(EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
  fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n", w.file);
  write_name(w.file, "process_name", 0, model);
  if (profile->spans.list)
    for (int worker = 0; worker < profile->workers; worker++) write_line(&w, worker);
  else
    write_end_to_end(&w);
  fputs("\n]}\n", w.file);
  int failed = ferror(w.file);
  if (fclose(w.file) || failed) fail(EXIT_ENVIRONMENT, "%s: cannot write", path);
}
