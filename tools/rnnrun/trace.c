/* SPDX-License-Identifier: MIT */
/*
 * The Trace Event Format (Google, Trace Event Format, 2016): an object whose traceEvents are "complete" events, "X", in
 * microseconds. Names come from the model file: they are escaped as JSON strings.
 */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

static void write_event(FILE *file, const rnncc_profile_entry *entry, double start_us) {
  double per_ns = entry->nanoseconds ? 1 / (double)entry->nanoseconds : 0;
  fputs(",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"name\": ", file);
  write_json_string(file, entry->node);
  fputs(", \"cat\": ", file);
  write_json_string(file, entry->kernel);
  fprintf(file, ", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"GFLOP/s\": %.3f, \"GB/s\": %.3f, \"kernel\": ", start_us,
          (double)entry->nanoseconds * 1e-3, entry->flops * per_ns, entry->bytes * per_ns);
  write_json_string(file, entry->kernel);
  fputs("}}", file);
}

void write_trace(const char *path, const char *model, const rnncc_profile_entry *entries, size_t count) {
  FILE *file = fopen(path, "w");
  if (!file) fail(EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
  fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
        "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": ",
        file);
  write_json_string(file, model);
  fputs("}}", file);
  double start_us = 0;
  for (size_t i = 0; i < count; i++) {
    write_event(file, &entries[i], start_us);
    start_us += (double)entries[i].nanoseconds * 1e-3;
  }
  fputs("\n]}\n", file);
  int failed = ferror(file);
  if (fclose(file) || failed) fail(EXIT_ENVIRONMENT, "%s: cannot write", path);
}
