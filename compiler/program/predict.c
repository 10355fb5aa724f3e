/* SPDX-License-Identifier: MIT */
/*
 * A call takes as long as its arithmetic at peak speed, or as reading its bytes: whichever is longer. Kernels reach
 * less than the peak, and Winograd's do less arithmetic; this says which of the two holds them.
 */
#include "program/predict.h"

#include "ir/config.h"
#include "machine/machine.h"

typedef struct Walk {
  const Program *program;
  const Machine *machine;
  Prediction *prediction;
  double gbps; /* of one worker */
} Walk;

/* Flops a nanosecond of one worker. */
static double peak_of_products(const Call *call) {
  const Machine *machine = call->program->graph->config->machine;
  const Target *target = call->program->graph->config->target;
  if (kernel_includes(call->kernel, MATRICES_HEADER)) return machine_matrix_gflops(machine, call->products);
  if (call->products == RNNCC_BF16) return machine_bf16_gflops(machine, target);
  return call->products == RNNCC_I8 ? machine_int8_gflops(machine, target) : machine->gflops;
}

static double gbps_of(const Machine *m, double bytes, int workers, const char **level) {
  bool in_l2 = bytes <= (double)m->l2_bytes * workers, in_l3 = bytes <= (double)m->l3_bytes;
  *level = in_l2 ? "L2 cache" : in_l3 ? "L3 cache" : "memory";
  return in_l2 ? m->l2_gbps : in_l3 ? m->l3_gbps : m->dram_gbps;
}

/* Bytes that the call touches, each once. */
static double touched_bytes(const Call *call) {
  const Item *item = call->item;
  double sum = 0;
  for (int a = 0; a < item->n_accesses; a++) {
    bool seen = false;
    for (int b = 0; b < a; b++) seen = seen || item->accesses[b].value == item->accesses[a].value;
    if (!seen) sum += value_optimum_bytes(item->accesses[a].value);
  }
  return sum;
}

/* What it touches comes from where the weights of all nodes are from run to run; what it reads again, from where its
 * own bytes have room. */
static double reading_ns(const Walk *walk, const Call *call) {
  const char *near;
  double touched = touched_bytes(call), once = call->bytes < touched ? call->bytes : touched;
  double again = gbps_of(walk->machine, touched, walk->prediction->workers, &near);
  return once / walk->gbps + (call->bytes - once) / again;
}

static void add_call(const Walk *walk, const Call *call, double turns) {
  Prediction *p = walk->prediction;
  double computing = call->flops / peak_of_products(call), reading = reading_ns(walk, call);
  double seconds = 1e-9 * turns * (computing > reading ? computing : reading) / p->workers;
  p->seconds[call->row] += seconds;
  p->by_memory[call->row] = reading > computing;
  *(reading > computing ? &p->reading : &p->computing) += seconds;
}

static void add_block(const Walk *walk, const Block *block, double turns) {
  for (int i = 0; block && i < block->count; i++) {
    const Item *item = block->items[i];
    double inner = turns;
    if (item->call) add_call(walk, item->call, turns);
    if (item->kind == ITEM_BARRIER) walk->prediction->barriers += turns;
    if (item->kind == ITEM_LOOP && item->dim) inner *= (double)dim_optimum(item->dim);
    if (item->kind == ITEM_LOOP && !item->dim) walk->prediction->unknown_turns = true;
    add_block(walk, item->block, inner);
    add_block(walk, item->other, inner);
  }
}

Prediction predict_program(const Program *program) {
  const Machine *machine = program->graph->config->machine;
  Prediction prediction = {.seconds = ARENA_ARRAY(program->arena, double, program->n_calls + 1),
                           .by_memory = ARENA_ARRAY(program->arena, bool, program->n_calls + 1),
                           .workers = program->share_from > 1 ? 1 : machine->cores};
  Walk walk = {program, machine, &prediction, 0};
  walk.gbps = gbps_of(machine, (double)program->weights_bytes, prediction.workers, &prediction.level);
  add_block(&walk, program->schedule, 1);
  if (prediction.workers > 1) prediction.meeting = 1e-9 * machine->barrier_ns * prediction.barriers;
  return prediction;
}
