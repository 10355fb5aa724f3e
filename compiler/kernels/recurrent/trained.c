/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/trained.h"

#include "kernels/recurrent/cost.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "support/numbers.h"

bool read_trained(Graph *graph, const Node *node, Trained *t) {
  const CellKind *kind = layer_cell(node->op->kind);
  const Value *x = node->inputs[INPUT_X], *w = node->inputs[INPUT_W];
  Direction direction = node_word(node, ATTR_direction);
  if (!dim_is_const(w->shape[2])) {
    error_at(node->where, EXIT_UNSUPPORTED, "the input size, axis 2 of W (`%.200s`), must be known at compile time",
             w->name);
    return false;
  }
  *t = (Trained){.cell = cell_of(node), .gates = kind->gates, .saved = cell_saved(kind)};
  if (!t->saved) t->saved = t->gates;
  t->directions = direction == DIRECTION_bidirectional ? 2 : 1;
  t->reverse = direction == DIRECTION_reverse;
  t->batch_first = node_int(node, ATTR_layout) != 0;
  t->steps = x->shape[t->batch_first];
  t->batch = x->shape[!t->batch_first];
  t->rows = dim_mul(graph->dims, t->steps, t->batch);
  t->most_rows = dim_upper(t->rows);
  t->most_batch = dim_upper(t->batch);
  t->inputs = dim_value(w->shape[2]);
  t->hidden = node_int(node, ATTR_hidden_size);
  t->input_forget = t->cell == CELL_LSTM && node_int(node, ATTR_input_forget);
  t->peepholes = t->cell == CELL_LSTM && node_input(node, INPUT_P);
  t->lengths = node_input(node, INPUT_LENGTHS);
  t->n_activations = kind->activations;
  read_activations(node, t->activations);
  return true;
}

/* A panel's vector feeds the multiply-adds of as many rows as registers have sums of. Where registers are many, its
 * bytes come from L1 as fast as that takes them: a block of so many is about half of one. Where they are few, vectors
 * are narrower, and L2 is fast enough: a block is the same part of all steps, and with the next one and the rows less
 * than L2. */
enum { BLOCK_BYTES = 32 << 10, L2_PARTS = 8, LEAST_DEPTH = 16 };

int64_t panel_depth_block(const Graph *graph, int vectors, int64_t depth) {
  const Target *target = graph->config->target;
  int64_t step = 4 * (int64_t)vectors * target->lanes;
  if (!target_has_few_registers(target)) return max_int(LEAST_DEPTH, BLOCK_BYTES / step);
  int64_t most = max_int(LEAST_DEPTH, graph->config->machine->l2_bytes / L2_PARTS / step);
  return min_int(most, round_up(ceil_div(depth, ceil_div(max_int(1, depth), most)), LEAST_DEPTH));
}

/* Sharing the units costs a barrier a step, which must be less than what the other workers save of the products. */
static bool worth_meeting(const Graph *graph, const Trained *t, double columns, int64_t depth, int workers) {
  const Machine *machine = graph->config->machine;
  double ns = 2 * (double)dim_optimum(t->batch) * columns * (double)depth / machine->gflops;
  return ns * (1 - 1.0 / workers) > meeting_ns(machine, workers);
}

/* An odd number of gates is in as many parts as there are gates, if these have several vectors, or in one. */
static int panel_parts(const Target *target, int gates, int unit_vectors, int64_t batch) {
  if (gates % 2) return unit_vectors > 1 ? gates : 1;
  return cell_panel_parts(target, gates * unit_vectors, batch);
}

enum { FEW_ROWS = 4 };
int trained_unit_vectors(const Graph *graph, const Trained *t) {
  const Target *target = graph->config->target;
  int vectors = cell_unit_vectors(t->cell, target, t->hidden), gates = cell_info(t->cell)->product_gates;
  int rows = register_rows(target, gates * vectors);
  bool pairs = ceil_div(t->hidden, (int64_t)vectors * target->lanes) % 2 == 0;
  bool widens = gates > 1 && gates % 2 && pairs && rows <= FEW_ROWS && dim_optimum(t->batch) > rows;
  return widens ? 2 * vectors : vectors;
}

TrainedSteps plan_steps(const Graph *graph, const Trained *t, int unit_vectors, int gates, int64_t depth) {
  const Target *target = graph->config->target;
  const Machine *machine = graph->config->machine;
  TrainedSteps s = {.unit_vectors = unit_vectors};
  int64_t units = (int64_t)unit_vectors * target->lanes;
  s.panels = ceil_div(t->hidden, units);
  MmExtents extents = {.i = dim_optimum(t->batch), .j = s.panels * units * gates, .k = depth};
  extents.steps = dim_optimum(t->steps);
  extents.most_i = t->most_batch > 1 ? t->most_batch : 1;
  extents.most_j = s.panels;
  int crew = machine->cores >= t->directions ? machine->cores / (int)t->directions : machine->cores;
  s.split = pcp_split(&extents, crew, usable_l2(machine));
  if (s.split.j > 1 && !worth_meeting(graph, t, (double)extents.j, depth, crew)) {
    int ways = (int)min_int(crew, extents.most_i);
    s.split = (Split){ways, 1, 1};
  }
  s.workers = s.split.i * s.split.j;
  s.parts = panel_parts(target, gates, unit_vectors, extents.i);
  s.part_vectors = gates * unit_vectors / s.parts;
  s.rows = block_rows(register_rows(target, s.part_vectors), t->batch, s.split.i);
  if (s.split.i > 1) s.rows.least = 1; /* the run may have fewer workers */
  s.depth_block = panel_depth_block(graph, s.part_vectors, depth);
  return s;
}

const char *workers_text(Arena *arena, const TrainedSteps *steps) {
  return steps->split.i > 1 ? arena_format(arena, "_p%d_s%d", steps->workers, steps->split.i)
                            : arena_format(arena, "_p%d", steps->workers);
}

KernelSpec *trained_spec(Program *program, const char *template_name, const Trained *t) {
  KernelSpec *spec = kernel_spec(program, template_name);
  kernel_knob(spec, "CELL", t->cell);
  if (t->lengths) kernel_type(spec, "Length", t->lengths->dtype);
  return spec;
}

void steps_knobs(KernelSpec *spec, const TrainedSteps *s) {
  kernel_knob(spec, "UNIT_VECTORS", s->unit_vectors);
  kernel_knob(spec, "PANEL_PARTS", s->parts);
  kernel_knob(spec, "ROWS", s->rows.most);
  kernel_knob(spec, "MIN_ROWS", s->rows.least);
  kernel_knob(spec, "DEPTH_BLOCK", s->depth_block);
  kernel_knob(spec, "WORKERS", s->workers);
  kernel_knob(spec, "BATCH_PARTS", s->split.i);
}

void give_extents(Call *call, const Node *node, const Trained *t) {
  (void)node;
  operand_value(call, "lengths", t->lengths, READ);
  operand_dim(call, "steps", t->steps);
  operand_dim(call, "batch", t->batch);
  operand_integer(call, "hidden", t->hidden);
  operand_integer(call, "directions", t->directions);
  operand_integer(call, "reverse", t->reverse);
  operand_integer(call, "batch_first", t->batch_first);
}

int64_t scratch_floats(Scratch *scratch, int64_t floats) {
  int64_t at = scratch->bytes, bytes = saturating_mul(floats, 4);
  scratch->bytes = saturating_add(at, bytes);
  scratch->bytes = scratch->bytes > INT64_MAX - 63 ? INT64_MAX : (scratch->bytes + 63) & ~INT64_C(63);
  return at;
}

/* Blocks of rows whose A a TLB covers; 0: all are. */
static int64_t blocks_in_use(const TrainedProduct *p) {
  int64_t rows = p->knobs.rows.most, blocks = max_int(1, TLB_BYTES / (4 * p->a_row * rows));
  return blocks < ceil_div(dim_upper(p->m), rows) ? blocks : 0;
}

Call *lower_product(Program *program, const Node *node, const TrainedProduct *p, bool adds) {
  KernelSpec *spec = gemm_spec(program->arena, &p->knobs);
  kernel_knob(spec, "ADDS", adds);
  kernel_knob(spec, "ADDEND", 0);
  kernel_knob(spec, "ROW_BLOCKS", blocks_in_use(p));
  Call *call = kernel_call(program, node, spec);
  operand_null(call, "addend");
  operand_null(call, "scales");
  operand_float(call, "scale", 1);
  operand_float(call, "addend_scale", 1);
  operand_dim(call, "m", p->m);
  operand_integer(call, "n", p->n);
  operand_dim(call, "k", p->k);
  operand_integer(call, "a_row", p->a_row);
  operand_integer(call, "a_depth", 1);
  operand_integer(call, "addend_row", 0);
  operand_integer(call, "c_row", p->c_row);
  operand_integer(call, "batch_rank", 0);
  operand_dim_array(call, "batch_dims", 0, NULL);
  operand_integer_array(call, "a_batch", 0, NULL);
  operand_integer_array(call, "b_batch", 0, NULL);
  call_flops(call, 2 * (double)p->n, EXTENTS(p->m, p->k));
  call_bytes(call, 4, EXTENTS(p->m, p->k));
  call_bytes(call, 4 * (double)p->n, EXTENTS(p->m));
  call_bytes(call, 4 * (double)p->n, EXTENTS(p->k));
  call_products(call, RNNCC_F32);
  return call;
}
