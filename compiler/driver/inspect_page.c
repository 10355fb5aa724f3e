/* SPDX-License-Identifier: MIT */
/* Facts and the table are written here; the page's scripts draw the graph and the memory plan from the data at its end.
 */
#include "driver/inspect_page.h"

#include <string.h>

#include "driver/verdict.h"
#include "emit/describe.h"
#include "ir/config.h"
#include "ir/narrow.h"
#include "ir/op.h"
#include "machine/targets.h"
#include "page_parts.h"
#include "program/plan_memory.h"
#include "program/predict.h"

/* ---- text ---- */

/* Names come from the model. */
static void add_text(Text *out, const char *text) {
  for (const char *c = text ? text : ""; *c; c++) {
    unsigned char byte = (unsigned char)*c;
    if (strchr("<>&\"'", *c))
      text_add(out, "&#%d;", byte);
    else
      text_bytes(out, byte < 0x20 || byte == 0x7f ? "?" : c, 1);
  }
}

static void add_fact(Text *out, const char *name, const char *value) {
  text_add(out, "<div><dt>%s</dt><dd>", name);
  add_text(out, value);
  text_add(out, "</dd></div>\n");
}

static void add_facts(Text *out, const Program *program, const Prediction *prediction) {
  Arena *arena = program->arena;
  double seconds = prediction->computing + prediction->reading + prediction->meeting;
  text_add(out, "<dl class=\"facts\">\n");
  add_fact(out, "built for", program->graph->config->target->name);
  add_fact(out, "threads", arena_format(arena, "%d", prediction->workers));
  add_fact(out, "predicted time",
           arena_format(arena, seconds < 1e-3 ? "%.3g µs" : "%.4g ms", seconds * (seconds < 1e-3 ? 1e6 : 1e3)));
  add_fact(out, "weights", arena_format(arena, "%.3g MB", (double)program->weights_bytes * 1e-6));
  add_fact(out, "memory of a context", arena_format(arena, "%.3g MB", (double)program->arena_bytes * 1e-6));
  for (int i = 0; i < dim_given_count(program->graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(program->graph->dims, i);
    add_fact(out, "extent",
             arena_format(arena, "%s = %lld to %lld, best at %lld", symbol->name, (long long)symbol->min,
                          (long long)symbol->max, (long long)symbol->opt));
  }
  text_add(out, "</dl>\n");
}

/* ---- what became part of a node, and why ---- */

static void add_ops(Text *out, Node *const *nodes, int count) {
  for (int i = 0; i < count; i++) text_add(out, "%s%s", i ? ", " : "", nodes[i]->op->name);
}

static void add_fused(Text *out, const Node *node) {
  static const char after[] = ": applied to results that are still in registers. ";
  if (node->n_prologue) {
    add_ops(out, node->prologue, node->n_prologue);
    text_add(out, ": applied where the only reader loads it. ");
  }
  if (node->n_epilogue) {
    add_ops(out, node->epilogue, node->n_epilogue);
    text_add(out, "%s", after);
  }
  if (node->pool) text_add(out, "%s: of a result that is then never written. ", node->pool->op->name);
  if (node->n_members) {
    add_ops(out, node->members, node->n_members);
    text_add(out, ": one kernel, values between stay in registers. ");
  }
  if (node->reduction) text_add(out, "%s: of elements that are never stored. ", node->reduction->op->name);
  if (node->attention) text_add(out, "MatMul, Softmax, MatMul: no matrix of scores in memory. ");
}

/* ---- the table ---- */

static const char *arithmetic_of(const Call *call) {
  const Node *node = call->item->node;
  if (call->products == RNNCC_I8) return "8-bit integers";
  for (int i = 0; i < node->n_inputs; i++) {
    const NarrowWeights *narrow = node->inputs[i] ? node->inputs[i]->narrow : NULL;
    if (narrow && call->products == RNNCC_F32) return "f32, weights of fewer bits";
    if (narrow && call->products == RNNCC_BF16 && !narrow->rounds_rows) return "f32, as three of bf16";
  }
  return call->products ? dtype_name(call->products) : "";
}

static const char *layout_of(Arena *arena, const Node *node) {
  static const char *const names[] = {[LAYOUT_ROW_MAJOR] = "row-major",
                                      [LAYOUT_NARROW] = "narrow blocks",
                                      [LAYOUT_BLOCKED] = "blocks",
                                      [LAYOUT_WIDE] = "wide blocks",
                                      [LAYOUT_ANY] = "any"};
  if (!is_blocked(node) && node->layout.reads == LAYOUT_ROW_MAJOR) return "row-major";
  if (node->layout.reads == node->layout.writes) return names[node->layout.reads];
  return arena_format(arena, "%s to %s", names[node->layout.reads], names[node->layout.writes]);
}

static void add_row(Text *out, const Program *program, const Prediction *prediction, int index) {
  const Call *call = program->calls[index];
  const Node *node = call->item->node;
  const char *schedule = call_schedule(call);
  text_add(out, "<tr><td class=\"number\">%d</td><td>", index);
  add_text(out, node->name);
  text_add(out, "</td><td>%s</td><td class=\"wrap\">", node->op->name);
  add_fused(out, node);
  text_add(out, "</td><td>%s</td><td>%s</td>", layout_of(program->arena, node), arithmetic_of(call));
  text_add(out, "<td class=\"number\">%.2f</td><td>%s</td>", 1e6 * prediction->seconds[index],
           prediction->by_memory[index] ? "reading"
           : call->flops > 0            ? "arithmetic"
                                        : "");
  text_add(out, "<td class=\"number\">%.4g</td><td class=\"number\">%.4g</td><td><code>", call->flops * 1e-6,
           call->bytes * 1e-6);
  add_text(out, schedule ? schedule : call->kernel->function);
  text_add(out, "</code></td></tr>\n");
}

static void add_table(Text *out, const Program *program, const Prediction *prediction) {
  text_add(out,
           "<h2>Nodes</h2>\n<p>Each kernel in the order in which it runs, at the extents that the network is best at. "
           "Times are predicted by the machine's description: kernels reach less than the peak.</p>\n"
           "<div class=\"scroll\"><table id=\"nodes\"><thead><tr><th></th><th>node</th><th>operator</th>"
           "<th>what became part of it, and why</th><th>layout</th><th>products</th>"
           "<th class=\"number\">predicted µs</th><th>held by</th><th class=\"number\">MFLOP</th>"
           "<th class=\"number\">MB</th><th>schedule</th></tr></thead><tbody>\n");
  for (int i = 0; i < program->n_calls; i++) add_row(out, program, prediction, i);
  text_add(out, "</tbody></table></div>\n");
}

/* ---- the page ---- */

static void add_remarks(Text *out, const Graph *graph) {
  if (!graph->n_remarks) return;
  text_add(out, "<h2>Remarks</h2>\n<ul id=\"remarks\">\n");
  for (int i = 0; i < graph->n_remarks; i++) {
    text_add(out, "<li>");
    add_text(out, graph->remarks[i]);
    text_add(out, "</li>\n");
  }
  text_add(out, "</ul>\n");
}

static void add_data(Text *out, const Program *program, const Prediction *prediction) {
  text_add(out, "{\"profile\":null,\"predicted\":[");
  for (int i = 0; i < program->n_calls; i++) text_add(out, "%s%.6g", i ? "," : "", 1e6 * prediction->seconds[i]);
  text_add(out, "],\"model\":");
  describe_program(out, program);
  text_add(out, "}\n");
}

Text inspect_page(const Program *program) {
  const char *name = program->graph->name;
  Prediction prediction = predict_program(program);
  Text out = text_new(program->arena);
  text_add(&out, "%s", page_parts[0]);
  add_text(&out, name);
  text_add(&out, ": schedule%s<h1>", page_parts[1]);
  add_text(&out, name);
  text_add(&out, "</h1>\n<p>What rnncc decided</p>\n");
  add_facts(&out, program, &prediction);
  text_add(&out, "<h2>Verdict</h2>\n<pre id=\"verdict\">");
  Text verdict = verdict_of(program);
  for (char *line = strtok(verdict.data, "\n"); line; line = strtok(NULL, "\n")) {
    add_text(&out, line);
    text_add(&out, "\n");
  }
  text_add(&out,
           "</pre>\n<h2>Graph</h2>\n<p>Nodes as they run, the more red the longer it is predicted to take. Those that "
           "became part of another stand behind its +.</p>\n<div class=\"chart tall\" id=\"graph\"></div>\n");
  add_table(&out, program, &prediction);
  add_remarks(&out, program->graph);
  text_add(&out,
           "<h2>Memory plan</h2>\n<p>Tensors in the working memory of a context, at the largest extents, over the "
           "steps in which they are needed%s.</p>\n<div class=\"chart\" id=\"memory\"></div>\n%s",
           program->plan->n_in_gradients ? "; but not those in the gradients' memory" : "", page_parts[2]);
  add_data(&out, program, &prediction);
  text_add(&out, "%s", page_parts[3]);
  return out;
}
