/* SPDX-License-Identifier: MIT */
#include "driver/verdict.h"

#include <string.h>

#include "ir/config.h"
#include "ir/op.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "program/predict.h"

typedef struct Verdict {
  Text out;
  const Program *program;
  Prediction prediction;
  double whole; /* seconds */
} Verdict;

/* ---- what runs ---- */

/* Nodes of an op, each once: its calls follow each other. */
typedef struct Count {
  const char *op;
  int nodes, blocked, int8;
} Count;

enum { MOST_COUNTS = 64 };

static Count *count_of(Count *counts, int *n, const char *op) {
  for (int i = 0; i < *n; i++)
    if (!strcmp(counts[i].op, op)) return &counts[i];
  if (*n == MOST_COUNTS) return &counts[MOST_COUNTS - 1];
  counts[*n] = (Count){.op = op};
  return &counts[(*n)++];
}

static int count_nodes(const Program *program, Count counts[MOST_COUNTS]) {
  int n = 0;
  for (int i = 0; i < program->n_calls; i++) {
    const Call *call = program->calls[i];
    const Node *node = call->item->node;
    Count *count = count_of(counts, &n, node->op->name);
    if (call->products == RNNCC_I8 && (i == 0 || program->calls[i - 1]->item->node != node)) count->int8++;
    if (i > 0 && program->calls[i - 1]->item->node == node) continue;
    count->nodes++;
    count->blocked += is_blocked(node);
  }
  return n;
}

static void add_counts(Verdict *v) {
  Count counts[MOST_COUNTS];
  int n = count_nodes(v->program, counts);
  text_add(&v->out, "%-8s ", "runs");
  for (int i = 0; i < n; i++) {
    text_add(&v->out, "%s%d %s", i ? ", " : "", counts[i].nodes, counts[i].op);
    if (counts[i].blocked) text_add(&v->out, " (%d on blocked channels)", counts[i].blocked);
    if (counts[i].int8) text_add(&v->out, " (%d in 8-bit integers)", counts[i].int8);
  }
  text_add(&v->out, "%s\n", n ? "" : "nothing: all is known before the run");
}

static void add_machine(Verdict *v) {
  const Config *config = v->program->graph->config;
  const Graph *graph = v->program->graph;
  text_add(&v->out, "%-8s %s, %d thread%s", "on", config->target->name, v->prediction.workers,
           v->prediction.workers == 1 ? "" : "s");
  if (v->prediction.workers < config->machine->cores)
    text_add(&v->out, " of %d: there is too little work to share", config->machine->cores);
  for (int i = 0; i < dim_given_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    text_add(&v->out, "%s%s=%lld", i ? ", " : "; at ", printable(v->program->arena, symbol->name),
             (long long)symbol->opt);
  }
  text_add(&v->out, "\n");
}

/* ---- what holds it ---- */

static double percent(const Verdict *v, double seconds) { return v->whole > 0 ? 100 * seconds / v->whole : 0; }

static void add_time(Text *out, double seconds) {
  if (seconds >= 1e-3)
    text_add(out, "%.3g ms", 1e3 * seconds);
  else
    text_add(out, "%.3g us", 1e6 * seconds);
}

static void add_bounds(Verdict *v) {
  const Prediction *p = &v->prediction;
  text_add(&v->out, "%-8s about ", "takes");
  add_time(&v->out, v->whole);
  text_add(&v->out,
           ": %.0f%% in kernels that arithmetic holds, %.0f%% in those that reading from the %s holds, %.0f%% waiting "
           "at %.0f "
           "barriers%s\n",
           percent(v, p->computing), percent(v, p->reading), p->level, percent(v, p->meeting), p->barriers,
           p->unknown_turns ? "; loops count once" : "");
}

/* Those of the longest time, of one node together. */
static void add_longest(Verdict *v) {
  enum { MOST = 3 };
  const Program *program = v->program;
  double *nodes = ARENA_ARRAY(program->arena, double, program->n_nodes + 1);
  for (int i = 0; i < program->n_calls; i++) nodes[program->calls[i]->item->node->id] += v->prediction.seconds[i];
  text_add(&v->out, "%-8s ", "most in");
  for (int k = 0; k < MOST; k++) {
    const Call *longest = NULL;
    for (int i = 0; i < program->n_calls; i++) {
      int id = program->calls[i]->item->node->id;
      if (nodes[id] > 0 && (!longest || nodes[id] > nodes[longest->item->node->id])) longest = program->calls[i];
    }
    if (!longest) break;
    for (int i = 0; i < program->n_calls; i++)
      if (program->calls[i]->item->node == longest->item->node &&
          v->prediction.seconds[i] > v->prediction.seconds[longest->row])
        longest = program->calls[i];
    text_add(&v->out, "%s%s %.0f%% (%s)", k ? ", " : "", printable(program->arena, longest->item->node->name),
             percent(v, nodes[longest->item->node->id]),
             v->prediction.by_memory[longest->row] ? "reading" : "arithmetic");
    nodes[longest->item->node->id] = 0;
  }
  text_add(&v->out, "\n");
}

/* ---- what to try ---- */

static bool any_call(const Program *program, bool is(const Call *call)) {
  for (int i = 0; i < program->n_calls; i++)
    if (is(program->calls[i])) return true;
  return false;
}

static bool multiplies_floats(const Call *call) { return call->products == RNNCC_F32; }

static bool has_wide_weights(const Call *call) {
  const Node *node = call->item->node;
  bool takes = is_op(node, OP_LSTM) || is_op(node, OP_GRU) || is_op(node, OP_RNN) || is_op(node, OP_MatMul) ||
               is_op(node, OP_Gemm);
  for (int i = 1; takes && i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->data && node->inputs[i]->dtype == RNNCC_F32 && !node->inputs[i]->narrow)
      return true;
  return false;
}

static bool is_convolution(const Call *call) { return is_op(call->item->node, OP_Conv); }

static bool batch_can_grow(const Program *program) {
  for (int i = 0; i < dim_given_count(program->graph->dims); i++)
    if (dim_symbol_at(program->graph->dims, i)->max > dim_symbol_at(program->graph->dims, i)->opt) return true;
  return false;
}

static void add_try(Verdict *v, int *n, const char *what) { text_add(&v->out, "%-8s %s\n", (*n)++ ? "" : "try", what); }

static void add_tries(Verdict *v) {
  const Prediction *p = &v->prediction;
  const Program *program = v->program;
  const Machine *m = program->graph->config->machine;
  int n = 0;
  if (p->reading >= p->computing && any_call(program, has_wide_weights))
    add_try(v, &n,
            "--precision=bf16 or int8: weights of half or a quarter of the bytes; rnnrun verify says what is lost");
  if (p->computing > p->reading && machine_int8_gflops(m, program->graph->config->target) > 1.5 * m->gflops &&
      any_call(program, multiplies_floats))
    add_try(v, &n, "rnncc quantize --data=SAMPLES: products of 8-bit integers are up to four times as fast");
  if (any_call(program, is_convolution))
    add_try(v, &n, "rnncc tune: measures the schedules of convolutions, and records the fastest");
  if (p->workers < m->cores && batch_can_grow(program))
    add_try(v, &n, "runs of a larger extent, such as more samples: all threads then share them");
  if (p->meeting > 0.2 * v->whole)
    add_try(v, &n, "--threads=1: workers wait for each other for a large part of the time");
  add_try(
      v, &n,
      "rnnrun profile --html=report.html: what it takes in fact; --explain=rnn, conv, layout or int8: every choice");
}

Text verdict_of(const Program *program) {
  Verdict v = {text_new(program->arena), program, predict_program(program), 0};
  v.whole = v.prediction.computing + v.prediction.reading + v.prediction.meeting;
  text_add(&v.out, "%-8s %s\n", "model", printable(program->arena, program->graph->name));
  add_machine(&v);
  add_counts(&v);
  if (v.whole > 0) {
    add_bounds(&v);
    add_longest(&v);
  }
  add_tries(&v);
  return v.out;
}
