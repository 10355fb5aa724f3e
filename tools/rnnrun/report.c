/* SPDX-License-Identifier: MIT */
/*
 * The page is tools/report's. What people read without scripts is written here: facts, and tables of kernels and
 * counters. Charts are drawn by the page's scripts, from the data at its end.
 */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf_file.h"
#include "extents.h"
#include "page_parts.h"
#include "speed.h"
#include "support.h"

typedef struct Writer {
  FILE *file;
  const Report *report;
  char *plan; /* JSON; NULL: the module has none */
  Bandwidth bandwidths[BANDWIDTHS];
} Writer;

/* ---- text ---- */

/* Names come from the model. */
static void write_text(FILE *file, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (strchr("<>&\"'", *c))
      fprintf(file, "&#%d;", *c);
    else
      putc(*c < 0x20 || *c == 0x7f ? '?' : *c, file);
  }
}

static void write_time(FILE *file, double microseconds) {
  if (microseconds >= 1000)
    fprintf(file, "%.3f ms", microseconds * 1e-3);
  else
    fprintf(file, "%.2f µs", microseconds);
}

/* ---- facts ---- */

static void begin_fact(FILE *file, const char *name) { fprintf(file, "<div><dt>%s</dt><dd>", name); }
static void end_fact(FILE *file) { fputs("</dd></div>\n", file); }

static void write_work_fact(const Writer *w) {
  const Profile *profile = w->report->profile;
  double flops = 0, median_ns = 1e3 * timings_quantile(&profile->run, 0.5);
  for (size_t i = 0; i < profile->count; i++) flops += profile->fastest[i].flops_done;
  double share = profile_share_of_peak(profile, w->report->peaks);
  begin_fact(w->file, "speed");
  fprintf(w->file, "%.1f GFLOP/s", median_ns > 0 ? flops / median_ns : 0);
  if (share > 0) fprintf(w->file, " <small>%.1f%% of the peak</small>", 100 * share);
  end_fact(w->file);
}

static void write_dims(const Writer *w) {
  const rnncc_info *info = w->report->session->api->info;
  if (!info->n_dims) return;
  begin_fact(w->file, "extents of the runs");
  for (int i = 0; i < info->n_dims; i++) {
    fputs(i ? ", " : "", w->file);
    write_text(w->file, rnncc_dim_at(info, i)->name);
    fprintf(w->file, "=%lld", (long long)extent_of(info, w->report->inputs, i));
  }
  end_fact(w->file);
}

static void write_facts(const Writer *w) {
  const rnncc_info *info = w->report->session->api->info;
  const Profile *profile = w->report->profile;
  char cpu[CPU_NAME_BYTES];
  fputs("<dl class=\"facts\">\n", w->file);
  begin_fact(w->file, "a run, the median");
  write_time(w->file, timings_quantile(&profile->run, 0.5));
  fprintf(w->file, " <small>of %lld</small>", (long long)w->report->runs);
  end_fact(w->file);
  write_work_fact(w);
  begin_fact(w->file, "threads");
  fprintf(w->file, "%d", w->report->threads);
  end_fact(w->file);
  write_dims(w);
  begin_fact(w->file, "memory");
  fprintf(w->file, "%.2f MB <small>and %.2f MB of weights</small>", (double)info->arena_bytes * 1e-6,
          (double)info->weights_bytes * 1e-6);
  end_fact(w->file);
  begin_fact(w->file, "built for");
  write_text(w->file, info->target);
  end_fact(w->file);
  begin_fact(w->file, "run on");
  fputs("<small>", w->file);
  write_text(w->file, cpu_name(cpu));
  fputs("</small>", w->file);
  end_fact(w->file);
  fputs("</dl>\n", w->file);
}

/* ---- tables ---- */

static void write_number(FILE *file, double number, const char *format) {
  fputs("<td class=\"number\">", file);
  fprintf(file, format, number);
  fputs("</td>", file);
}

static void write_kernel(const Writer *w, size_t index, double whole) {
  const rnncc_profile_entry *entry = &w->report->profile->fastest[index];
  const Timings *times = &w->report->profile->kernels[index];
  double median = timings_quantile(times, 0.5), mean = timings_mean(times), per_ns = median > 0 ? 1e-3 / median : 0;
  double part = whole > 0 ? mean / whole : 0, peak = peak_of(w->report->peaks, entry);
  fprintf(w->file, "<tr><td class=\"number\">%zu</td><td>", index);
  write_text(w->file, entry->node);
  fputs("</td>", w->file);
  write_number(w->file, median, "%.2f");
  write_number(w->file, mean, "%.2f");
  write_number(w->file, 100 * part, "%.1f");
  fprintf(w->file, "<td><span class=\"bar\" style=\"width: %.1fpx\"></span></td>", 100 * part);
  write_number(w->file, entry->flops_done * per_ns, "%.2f");
  write_number(w->file, entry->bytes_done * per_ns, "%.2f");
  if (peak > 0)
    write_number(w->file, 100 * entry->flops_done * per_ns / peak, "%.1f");
  else
    fputs("<td class=\"number\">-</td>", w->file);
  fputs("<td><code>", w->file);
  write_text(w->file, entry->kernel);
  fputs("</code></td></tr>\n", w->file);
}

static void write_kernels(const Writer *w) {
  const Profile *profile = w->report->profile;
  double whole = timings_mean(&profile->run);
  fputs(
      "<h2>Kernels</h2>\n<p>In the order in which they run. Rates and percentages of the peak are those of the median; "
      "the part of the time is that of the mean.</p>\n<div class=\"scroll\"><table id=\"kernels\"><thead><tr>"
      "<th></th><th>node</th><th class=\"number\">median µs</th><th class=\"number\">mean µs</th>"
      "<th class=\"number\">% of time</th><th></th><th class=\"number\">GFLOP/s</th><th class=\"number\">GB/s</th>"
      "<th class=\"number\">% of peak</th><th>kernel</th></tr></thead><tbody>\n",
      w->file);
  for (size_t i = 0; i < profile->count; i++) write_kernel(w, i, whole);
  fputs("</tbody></table></div>\n", w->file);
}

static const char *refusal(int error) {
  return error == EACCES || error == EPERM    ? "not allowed: /proc/sys/kernel/perf_event_paranoid"
         : error == ENOENT || error == ENODEV ? "not on this machine"
                                              : strerror(error);
}

static void write_counters(const Writer *w) {
  const Counters *counters = w->report->counters;
  fprintf(w->file,
          "<h2>Counters</h2>\n<p>Of all threads in user space, for each of %lld further runs, which were not "
          "profiled.</p>\n<div class=\"scroll\"><table id=\"counters\"><tbody>\n",
          (long long)w->report->runs);
  for (int i = 0; i < COUNTERS; i++) {
    const Counter *counter = &counters->list[i];
    fprintf(w->file, "<tr><td>%s</td>", counter->name);
    if (counter->file >= 0)
      write_number(w->file, (double)counter->count / (double)w->report->runs, "%.1f");
    else
      fprintf(w->file, "<td>%s</td>", refusal(counter->error));
    fputs("</tr>\n", w->file);
  }
  fputs("</tbody></table></div>\n", w->file);
}

/* ---- sections that scripts fill ---- */

static void write_charts(const Writer *w) {
  fputs(
      "<h2>Roofline</h2>\n<p>Each circle is a kernel, as large as its part of the time. It cannot be above the lines: "
      "below a rising one memory holds it, below a level one arithmetic. Bytes count where they are read or written, "
      "whatever cache has them, so what stays in a cache may pass the line of memory. Convolutions count as direct "
      "ones: "
      "Winograd's may be above all lines.</p>\n"
      "<div class=\"chart\" id=\"roofline\"></div>\n"
      "<h2>Time by worker</h2>\n<p>The fastest run: nodes, below them their kernels; grey is waiting for other "
      "workers. "
      "Each name has one colour.</p>\n"
      "<label>zoom <input type=\"range\" id=\"zoom\" min=\"1\" max=\"20\" value=\"1\" /></label>\n"
      "<div class=\"chart\" id=\"flame\"></div>\n",
      w->file);
  if (!w->plan) {
    fputs("<p>The module has no plan: it was compiled by an older rnncc.</p>\n", w->file);
    return;
  }
  fputs(
      "<h2>Graph</h2>\n<p>Nodes as they run, the more red the more time. Those that became part of another stand "
      "behind its +.</p>\n<div class=\"chart tall\" id=\"graph\"></div>\n"
      "<h2>Memory plan</h2>\n<p>Tensors in the working memory of a context, at the largest extents, over the steps in "
      "which they are needed.</p>\n<div class=\"chart\" id=\"memory\"></div>\n",
      w->file);
}

/* ---- data ---- */

static void write_kernel_data(const Writer *w, size_t index) {
  const rnncc_profile_entry *entry = &w->report->profile->fastest[index];
  fputs(index ? ",{\"kernel\":" : "{\"kernel\":", w->file);
  write_json_string(w->file, entry->kernel);
  fputs(",\"node\":", w->file);
  write_json_string(w->file, entry->node);
  fprintf(w->file, ",\"median\":%.4f,\"flops\":%.17g,\"bytes\":%.17g}",
          timings_quantile(&w->report->profile->kernels[index], 0.5), entry->flops_done, entry->bytes_done);
}

static void write_span_data(const Writer *w) {
  const Profile *profile = w->report->profile;
  uint64_t first = profile_begins(profile);
  for (int worker = 0; profile->spans.list && worker < profile->workers; worker++) {
    const rnncc_span *spans = profile_spans(profile, worker);
    size_t count = profile_span_count(profile, worker);
    fputs(worker ? ",[" : "[", w->file);
    for (size_t i = 0; i < count; i++)
      fprintf(w->file, "%s[%d,%.3f,%.3f]", i ? "," : "", (int)spans[i].entry, (double)(spans[i].begin - first) * 1e-3,
              (double)(spans[i].end - spans[i].begin) * 1e-3);
    fputs("]", w->file);
  }
}

static void write_data(const Writer *w) {
  fprintf(w->file, "{\"profile\":{\"peaks\":{\"f32\":%.3f,\"8 bits\":%.3f},\"bandwidths\":[", w->report->peaks->f32,
          w->report->peaks->int8);
  for (int i = 0; i < BANDWIDTHS; i++)
    fprintf(w->file, "%s{\"name\":\"%s\",\"gbps\":%.3f}", i ? "," : "", w->bandwidths[i].name, w->bandwidths[i].gbps);
  fputs("],\"kernels\":[", w->file);
  for (size_t i = 0; i < w->report->profile->count; i++) write_kernel_data(w, i);
  fputs("],\"spans\":[", w->file);
  write_span_data(w);
  fprintf(w->file, "]},\"model\":%s}\n", w->plan ? w->plan : "null");
}

/* ---- the page ---- */

/* The plan of this network for this target: a note of the file. */
static char *plan_of(const Session *session) {
  char *begin = NULL, *plan = NULL;
  size_t length = 0;
  FILE *text = open_memstream(&begin, &length);
  if (!text) fail(EXIT_RESOURCE, "out of memory");
  fputs("{\"name\":", text);
  write_json_string(text, session->api->info->name);
  fputs(",\"target\":", text);
  write_json_string(text, session->api->info->target);
  if (fclose(text)) fail(EXIT_RESOURCE, "out of memory");
  ElfFile file = elf_open(session->path);
  const char *note;
  ElfPlace place = {0};
  while (file.bytes && !plan && (note = elf_note(&file, ELF_PLAN, &place)))
    if (!strncmp(note, begin, length)) plan = strdup(note);
  elf_close(&file);
  free(begin);
  return plan;
}

static void write_page(const Writer *w) {
  const char *name = w->report->session->api->info->name;
  fputs(page_parts[0], w->file);
  write_text(w->file, name);
  fputs(": profile", w->file);
  fputs(page_parts[1], w->file);
  fputs("<h1>", w->file);
  write_text(w->file, name);
  fputs("</h1>\n<p>Profile by rnnrun</p>\n", w->file);
  write_facts(w);
  write_charts(w);
  write_kernels(w);
  write_counters(w);
  fputs(page_parts[2], w->file);
  write_data(w);
  fputs(page_parts[3], w->file);
}

/* Of data that no L1 keeps, and of data that no cache keeps. */
static void measure_bandwidths(Writer *w) {
  enum { IN_L2 = 256 << 10, IN_MEMORY = 256 << 20 };
  const char *isa = w->report->session->api->info->isa;
  int threads = w->report->threads;
  w->bandwidths[0] = (Bandwidth){"L2 cache", threads * speed_read(isa, threads, IN_L2, false)};
  w->bandwidths[1] = (Bandwidth){"memory", threads * speed_memory(isa, threads, IN_MEMORY / (size_t)threads)};
}

void write_report(const Report *report) {
  Writer w = {fopen(report->path, "w"), report, plan_of(report->session), {{0}}};
  if (!w.file) fail(EXIT_ENVIRONMENT, "%s: %s", report->path, strerror(errno));
  measure_bandwidths(&w);
  write_page(&w);
  free(w.plan);
  int failed = ferror(w.file);
  if (fclose(w.file) || failed) fail(EXIT_ENVIRONMENT, "%s: cannot write", report->path);
}
