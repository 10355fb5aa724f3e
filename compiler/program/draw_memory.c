/* SPDX-License-Identifier: MIT */
#include "program/draw_memory.h"

#include <string.h>

#include "support/numbers.h"

/* In pixels. The plot's origin is its lower left corner. */
enum { WIDTH = 1200, HEIGHT = 640, LEFT = 90, RIGHT = 20, TOP = 56, BOTTOM = 50, FONT = 11, LETTER = 6 };

typedef struct Plot {
  Text out;
  const Program *program;
  const MemoryPlan *plan;
  int steps;
  const Node **nodes; /* by step; NULL: none */
  double step, byte;  /* pixels each */
} Plot;

static double x_of(const Plot *plot, int step) { return LEFT + step * plot->step; }
static double y_of(const Plot *plot, int64_t offset) { return HEIGHT - BOTTOM - (double)offset * plot->byte; }

/* Names come from the model. */
static void add_escaped(Text *out, const char *text, size_t most) {
  for (size_t i = 0; text && text[i] && i < most; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c >= 0x7f || strchr("&<>\"'", c))
      text_add(out, "&#%d;", c < 0x20 || c >= 0x7f ? '?' : c);
    else
      text_bytes(out, text + i, 1);
  }
}

static void add_bytes(Text *out, int64_t bytes) {
  if (bytes >= 1000000)
    text_add(out, "%.4g MB", (double)bytes * 1e-6);
  else if (bytes >= 10000)
    text_add(out, "%.4g kB", (double)bytes * 1e-3);
  else
    text_add(out, "%lld B", (long long)bytes);
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, so that there are at most `most` ticks up to `end`. */
static int64_t tick_distance(int64_t end, int64_t most) {
  static const int factors[] = {1, 2, 5};
  for (int64_t power = 1;; power *= 10)
    for (int i = 0; i < 3; i++)
      if (end / (factors[i] * power) <= most) return factors[i] * power;
}

static void draw_axes(Plot *plot) {
  Text *out = &plot->out;
  int64_t bytes = plot->plan->arena_bytes, every = tick_distance(bytes, 8);
  for (int64_t at = 0; at <= bytes; at += every) {
    text_add(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT,
             y_of(plot, at), WIDTH - RIGHT, LEFT - 6, y_of(plot, at) + 4);
    add_bytes(out, at);
    text_add(out, "</text>\n");
  }
  every = tick_distance(plot->steps, 16);
  for (int64_t at = 0; at <= plot->steps; at += every)
    text_add(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n",
             x_of(plot, (int)at) + plot->step / 2, HEIGHT - BOTTOM + 16, (long long)at);
  text_add(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step of the schedule</text>\n",
           (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
}

/* ---- bars ---- */

static const char *step_name(const Plot *plot, int step) {
  return plot->nodes[step] ? plot->nodes[step]->name : "the end";
}

static void add_tooltip(Plot *plot, const Interval *interval) {
  Text *out = &plot->out;
  const Value *value = interval->value;
  text_add(out, "<title>");
  add_escaped(out, value->name, 200);
  text_add(out, "\n%s", dtype_name(value->dtype));
  dims_print(out, value->rank, value->shape);
  text_add(out, ", %lld bytes at %lld\nsteps %d (", (long long)interval->bytes, (long long)value->offset,
           interval->first);
  add_escaped(out, step_name(plot, interval->first), 80);
  text_add(out, ") to %d (", interval->last);
  add_escaped(out, step_name(plot, interval->last), 80);
  text_add(out, ")");
  if (interval->over) {
    text_add(out, "\nwritten over ");
    add_escaped(out, interval->over->name, 200);
  }
  text_add(out, "</title>");
}

/* A value written over another is live at that one's last step too: its bar begins half a step later. */
static void draw_bar(Plot *plot, const Interval *interval) {
  static const char *const colours[] = {"#8dd3c7", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5"};
  enum { COLOURS = sizeof colours / sizeof *colours };
  Text *out = &plot->out;
  const Value *value = interval->value;
  double begin = x_of(plot, interval->first) + (interval->over ? plot->step / 2 : 0);
  double width = x_of(plot, interval->last + 1) - begin, height = (double)interval->bytes * plot->byte;
  double top = y_of(plot, value->offset) - height;
  text_add(out, "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>", begin, top, width,
           height, value->producer ? colours[value->id % COLOURS] : "#d9d9d9");
  add_tooltip(plot, interval);
  if (height >= FONT + 2 && width >= 5 * LETTER) {
    text_add(out, "<text x=\"%.1f\" y=\"%.1f\">", begin + 3, top + height / 2 + 4);
    add_escaped(out, value->name, (size_t)(width / LETTER) - 1);
    text_add(out, "</text>");
  }
  text_add(out, "</g>\n");
}

/* ---- lines ---- */

static void draw_live_bytes(Plot *plot) {
  int64_t *change = ARENA_ARRAY(plot->out.arena, int64_t, plot->steps + 2), live = 0;
  for (int i = 0; i < plot->plan->n_spans; i++) {
    change[plot->plan->spans[i].first] += plot->plan->spans[i].bytes;
    change[plot->plan->spans[i].last + 1] -= plot->plan->spans[i].bytes;
  }
  text_add(&plot->out, "<path class=\"live\" d=\"M%d %.1f", LEFT, y_of(plot, 0));
  for (int step = 0; step < plot->steps; step++) {
    live += change[step];
    text_add(&plot->out, "V%.1fH%.1f", y_of(plot, live), x_of(plot, step + 1));
  }
  text_add(&plot->out, "\"/>\n");
}

static void draw_level(Plot *plot, const char *class, int64_t bytes) {
  text_add(&plot->out, "<path class=\"%s\" d=\"M%d %.1fH%d\"/>\n", class, LEFT, y_of(plot, bytes), WIDTH - RIGHT);
}

static void draw_heading(Plot *plot) {
  Text *out = &plot->out;
  text_add(out, "<text class=\"heading\" x=\"%d\" y=\"20\">", LEFT);
  add_escaped(out, plot->program->graph->name, 80);
  text_add(out, ": memory of a run</text>\n<text x=\"%d\" y=\"38\"><tspan class=\"arena-key\">&#9473; arena, ", LEFT);
  add_bytes(out, plot->plan->arena_bytes);
  text_add(out, "</tspan><tspan dx=\"16\" class=\"bound-key\">&#9476; most live at once, ");
  add_bytes(out, plot->plan->lower_bound);
  text_add(out, "</tspan><tspan dx=\"16\" class=\"live-key\">&#9472; live at each step</tspan></text>\n");
}

/* ---- the picture ---- */

static const char style[] = "<style>\n"
                            "text { font: 11px sans-serif; fill: #222 }\n"
                            ".heading { font-size: 14px; font-weight: bold }\n"
                            "rect { stroke: #555; stroke-width: 0.5 }\n"
                            ".grid { stroke: #ddd; fill: none }\n"
                            ".arena { stroke: #c00; stroke-width: 2; fill: none }\n"
                            ".bound { stroke: #00c; stroke-width: 2; stroke-dasharray: 6 4; fill: none }\n"
                            ".live { stroke: #000; stroke-width: 1; fill: none }\n"
                            ".arena-key { fill: #c00 } .bound-key { fill: #00c } .live-key { fill: #000 }\n"
                            "</style>\n";

static void note_node(Item *item, Block *block, void *context) {
  (void)block;
  Plot *plot = context;
  if (item->node && !plot->nodes[item->step]) plot->nodes[item->step] = item->node;
}

static int last_step(const MemoryPlan *plan) {
  int last = 0;
  for (int i = 0; i < plan->n_intervals; i++) last = (int)max_int(last, plan->intervals[i].last);
  return (int)max_int(last, plan->end - 1);
}

Text draw_memory(const Program *program) {
  const MemoryPlan *plan = program->plan;
  Plot plot = {.out = text_new(program->arena), .program = program, .plan = plan};
  plot.steps = last_step(plan) + 1;
  plot.nodes = ARENA_ARRAY(program->arena, const Node *, plan->end + 1);
  each_item(program, note_node, &plot);
  plot.step = (double)(WIDTH - LEFT - RIGHT) / plot.steps;
  plot.byte = (double)(HEIGHT - TOP - BOTTOM) / (double)(plan->arena_bytes > 0 ? plan->arena_bytes : 1);
  text_add(&plot.out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n%s", WIDTH, HEIGHT, style);
  text_add(&plot.out, "<path fill=\"#fff\" d=\"M0 0H%dV%dH0z\"/>\n", WIDTH, HEIGHT);
  draw_axes(&plot);
  for (int i = 0; i < plan->n_intervals; i++) draw_bar(&plot, &plan->intervals[i]);
  draw_live_bytes(&plot);
  draw_level(&plot, "arena", plan->arena_bytes);
  draw_level(&plot, "bound", plan->lower_bound);
  draw_heading(&plot);
  text_add(&plot.out, "</svg>\n");
  return plot.out;
}
